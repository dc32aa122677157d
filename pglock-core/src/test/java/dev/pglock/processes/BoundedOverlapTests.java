package dev.pglock.processes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.StandbyServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Where two may hold a lock at the same time, and what ends that. */
@Execution(ExecutionMode.CONCURRENT)
class BoundedOverlapTests {

    /** The interval, and room for a machine that is busy. */
    private static final Duration HEARTBEAT = Jvm.LEASE.dividedBy(3).plusMillis(1500);

    private static final LockRequest REQUEST = LockRequest.of("name");

    private static LockEngine engine(TestDatabase database, String url, String label) {
        return new Jvm(url, database.username(), database.password(), label).engine();
    }

    /** What the row of a lock looks like after the server's clock was set forward, or backward, by that much. */
    private static void stepClock(TestDatabase database, String seconds) {
        database.execute("UPDATE pglock_lease SET acquired_at = acquired_at - interval '" + seconds
                + "', expires_at = expires_at - interval '" + seconds + "'");
    }

    @Test
    void whenTheServersClockIsSetForwardTheHolderKnowsAHeartbeatLaterAndCommitsNothing() throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            try (LockEngine a = engine(database, database.url(), "A");
                    LockEngine b = engine(database, database.url(), "B");
                    Connection business = database.direct()) {
                business.setAutoCommit(false);
                LockHandle first = a.tryAcquire(REQUEST).orElseThrow();
                stepClock(database, "1 hour");

                LockHandle second = b.tryAcquire(REQUEST).orElseThrow();

                assertThatExceptionOfType(LockLostException.class)
                        .isThrownBy(() -> a.commitFence().check(business, first));
                await().atMost(HEARTBEAT).until(() -> !first.isHeld());
                assertThat(first.release()).isFalse();
                assertThat(second.release()).isTrue();
            }
        }
    }

    @Test
    void whenTheServersClockIsSetBackALiveHolderLosesNothingAndADeadOnesLeaseLastsUntilItIsForced() throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            try (LockEngine a = engine(database, database.url(), "A");
                    LockEngine b = engine(database, database.url(), "B")) {
                LockHandle alive = a.tryAcquire(REQUEST).orElseThrow();
                stepClock(database, "-1 hour");
                await().during(Jvm.LEASE.plusSeconds(1))
                        .atMost(Jvm.LEASE.plusSeconds(2))
                        .until(alive::isHeld);
                // Which is how it dies: its row stays.
                a.close();

                assertThat(b.tryAcquire(REQUEST)).isEmpty();
                assertThat(b.forceRelease("name", "its holder is dead, and the clock was set back", true))
                        .isTrue();
                assertThat(b.tryAcquire(REQUEST)).isPresent();
            }
        }
    }

    /** Replication has stopped before the grants: the new primary has never heard of them. */
    @Test
    void afterAFailoverThatLosesTheGrantTheHolderKnowsAHeartbeatLater() throws Exception {
        try (StandbyServer servers = StandbyServer.start();
                TcpProxy proxy = TcpProxy.to(servers.primary())) {
            TestDatabase primary = servers.onPrimary();
            primary.execute(LeaseSchema.ddl(Jvm.TABLE));
            servers.catchUp();
            servers.lagBehind();
            try (LockEngine a = engine(primary, primary.url(proxy), "A");
                    LockEngine b =
                            engine(servers.onStandby(), servers.onStandby().url(), "B")) {
                LockRequest byAdvisoryLock = LockRequest.of("other").strategy(LockStrategy.ADVISORY);
                LockHandle lease = a.tryAcquire(REQUEST).orElseThrow();
                LockHandle advisory = a.tryAcquire(byAdvisoryLock).orElseThrow();
                servers.failOver();
                proxy.redirect(servers.standby());

                LockHandle next = await().atMost(Duration.ofSeconds(20))
                        .ignoreExceptions()
                        .until(() -> b.tryAcquire(REQUEST).orElseThrow(), lock -> true);
                LockHandle nextAdvisory = b.tryAcquire(byAdvisoryLock).orElseThrow();

                await().atMost(HEARTBEAT).until(() -> !lease.isHeld() && !advisory.isHeld());
                assertThat(lease.release()).isFalse();
                assertThat(advisory.release()).isFalse();
                assertThat(next.isHeld() && nextAdvisory.isHeld()).isTrue();
            }
        }
    }
}
