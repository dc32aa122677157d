package dev.pglock.processes;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockStrategy;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The programs of this package, for a short while. */
@Tag("long")
class ProcessesTests {

    /** Nothing told in vain is longer than a poll, with room for a busy machine. */
    private static final double POLL_SECONDS = 2.5;

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aLockIsHandedOverWithinMilliseconds(LockStrategy strategy) throws Exception {
        HandOver.Result result = HandOver.measure(strategy, 100);

        System.out.println(result);
        assertThat(result.count()).isGreaterThan(80);
        assertThat(result.p50()).isLessThan(Duration.ofMillis(50));
    }

    @Test
    void whateverIsKilledNobodyOverlapsAndNobodyWaitsInVain() throws Exception {
        Chaos.Result result = Chaos.run(Duration.ofSeconds(20));

        System.out.println(result);
        assertThat(result.kills()).isGreaterThan(3);
        assertThat(result.tenures()).isGreaterThan(500);
        assertThat(result.waits()).isGreaterThan(200);
        assertThat(result.overlaps()).isZero();
        assertThat(result.fencesNotGreater()).isZero();
        assertThat(result.longestWait()).isPositive().isLessThan(POLL_SECONDS);
        assertThat(result.longestAfterKill()).isLessThan(POLL_SECONDS);
        assertThat(result.longestLease()).isLessThan(Jvm.LEASE.toSeconds() + POLL_SECONDS);
        assertThat(result.failures()).isEmpty();
    }
}
