package dev.pglock.processes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The programs of this package, for a short while. */
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

    @Test
    void aHolderThatWasFrozenCommitsNothingAndReleasesNothing() throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            database.execute("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0);"
                    + " CREATE TABLE said (what text, at timestamptz DEFAULT clock_timestamp())");
            Process frozen = Jvm.start(FrozenHolder.class, database, "A");
            Jvm other = new Jvm(database.url(), database.username(), database.password(), "B");
            try (LockEngine engine = other.engine()) {
                await().atMost(Duration.ofSeconds(30))
                        .until(() -> said(database).equals("WORKS"));
                Jvm.signal(frozen, "STOP");
                try (LockHandle next = engine.acquire(LockRequest.of(FrozenHolder.NAME))) {
                    Jvm.signal(frozen, "CONT");
                    assertThat(frozen.waitFor(30, TimeUnit.SECONDS)).isTrue();

                    assertThat(said(database)).isEqualTo("WORKS, LOST, REFUSED, RELEASED NOTHING");
                    assertThat(database.number("SELECT value FROM counter")).isZero();
                    next.extend(Jvm.LEASE);
                    assertThat(database.number(
                                    "SELECT fence FROM pglock_lease WHERE holder IS NOT NULL AND holder_label = 'B'"))
                            .isEqualTo(next.fence());
                }
            } finally {
                frozen.destroyForcibly();
            }
        }
    }

    private static String said(TestDatabase database) {
        return String.valueOf(database.text("SELECT string_agg(what, ', ' ORDER BY ctid) FROM said"));
    }
}
