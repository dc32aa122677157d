package dev.pglock.processes;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockStrategy;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.testing.Faults;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** {@link Checker}, for a short while, or as long as {@code -Dpglock.test.checker=PT2M} says. */
class CheckerTests {

    /** What is left out of the measure: JVMs that get no processor on a busy machine. */
    private static final Duration ROOM = Duration.ofMillis(500);

    private static final Duration DURATION = Duration.parse(System.getProperty("pglock.test.checker", "PT8S"));

    private static final Duration HEARTBEAT = Jvm.LEASE.dividedBy(3);

    /** Who vanished while it committed keeps a name for that long; who vanished otherwise, for its lease. */
    private static final Duration COMMIT = JdbcTimeouts.of(Jvm.LEASE).work().multipliedBy(2);

    @Test
    void whateverFailsNothingStaleIsCommittedAndEveryNameIsHadAgain() throws Exception {
        Faults faults = Faults.random().lastingAtMost(Duration.ofSeconds(3));

        check(faults, Checker.run(faults, DURATION));
    }

    private static void check(Faults faults, Checker.Result result) throws Exception {
        System.out.println(result);
        faults.explain(() -> {
            assertThat(result.faults()).isPositive();
            assertThat(result.commits()).isPositive();
            assertThat(result.lostUpdates()).isZero();
            assertThat(result.lateCommits()).isZero();
            assertThat(result.outOfOrder()).isZero();
            assertThat(result.longestOverlap().get(LockStrategy.LEASE))
                    .as("after a freeze, until the holder looks at its watch")
                    .isLessThan(HEARTBEAT);
            assertThat(result.longestOverlap().get(LockStrategy.ADVISORY))
                    .as("a heartbeat and its timeout")
                    .isLessThan(HEARTBEAT.multipliedBy(2).plus(ROOM));
            assertThat(result.recovered()).isTrue();
            assertThat(result.idle())
                    .as("somebody who is gone, and a poll")
                    .isLessThan(COMMIT.plusSeconds(1).plus(ROOM));
        });
    }
}
