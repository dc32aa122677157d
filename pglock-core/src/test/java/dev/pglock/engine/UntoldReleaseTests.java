package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.Telling;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Servers that let nobody be told of a release: locks are released all the same, and whoever waits polls. */
class UntoldReleaseTests {

    private static final Duration LEASE = Duration.ofSeconds(30);
    private static final Duration POLLED = Duration.ofMillis(2500);

    private static LockEngine engine(ReplicaStores stores, String label) {
        StoreIdentity identity = StoreIdentity.random("untold", label);
        SessionFactory sessions = stores.sessions(identity, stores.database().url(), LEASE);
        return LockEngine.builder(EngineSettings.defaults("untold", label, LockStrategy.LEASE)
                        .withLease(LEASE, null))
                .store(stores.lease(identity, stores.database().url(), LEASE, 2))
                .store(stores.store(identity, stores.database().url(), LEASE, 100))
                .wakeUps(new NotifiedWakeUps(sessions))
                .build();
    }

    private static void releasesAreCarriedOut(ReplicaStores stores, LockStrategy strategy) throws Exception {
        LockRequest request = LockRequest.of("n").strategy(strategy).waitTimeout(Duration.ofSeconds(20));
        ExecutorService threads = Executors.newCachedThreadPool();
        try (LockEngine a = engine(stores, "A");
                LockEngine b = engine(stores, "B");
                CapturedLog log = CapturedLog.of(Telling.class)) {
            for (int i = 0; i < 2; i++) {
                LockHandle lock = a.tryAcquire(request).orElseThrow();
                Future<Long> waiter = threads.submit(() -> {
                    try (LockHandle handedOver = b.acquire(request)) {
                        return System.nanoTime();
                    }
                });
                await().until(() -> stores.database()
                                .number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2")
                        == 1);
                long released = System.nanoTime();
                assertThat(lock.release()).isTrue();
                assertThat(Duration.ofNanos(waiter.get(20, TimeUnit.SECONDS) - released))
                        .isLessThan(POLLED);
                await().until(() ->
                        stores.database().number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0);
            }
            assertThat(log.messages()).isNotEmpty().allMatch(line -> line.startsWith("WARN The server lets nobody"));
            LockHandle lock = a.tryAcquire(request).orElseThrow();
            assertThat(b.forceRelease("n", "the test says so", true)).isTrue();
            b.acquire(request).close();
            lock.close();
        } finally {
            threads.shutdownNow();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aRoleThatMayNotNotifyReleases(LockStrategy strategy) throws Exception {
        try (ReplicaStores stores = ReplicaStores.withTable()) {
            TestDatabase database = stores.database();
            String role = database.server().newRole();
            database.execute("REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC");
            database.execute("GRANT ALL ON pglock_lease TO " + role);
            releasesAreCarriedOut(stores.as(role), strategy);
        }
    }

    @Test
    void aReleaseIsCarriedOutWhileTheServersQueueOfNotificationsIsFull() throws Exception {
        try (TestDatabase any = PostgresServer.shared().newDatabase()) {
            assumeTrue(
                    any.isTrue("SELECT current_setting('server_version_num')::int >= 170000"),
                    "max_notify_queue_pages came with PostgreSQL 17; before, the queue had 8 GB");
        }
        try (PostgresServer server = PostgresServer.dedicated(Map.of("max_notify_queue_pages", "64"));
                ReplicaStores stores = ReplicaStores.withTable(server.newDatabase());
                Connection slow = stores.database().direct();
                Connection noisy = stores.database().direct()) {
            fill(slow, noisy);
            releasesAreCarriedOut(stores, LockStrategy.LEASE);
            releasesAreCarriedOut(stores, LockStrategy.ADVISORY);
        }
    }

    /** Somebody listens in a transaction that does not end, so that the queue is kept for him. */
    private static void fill(Connection slow, Connection noisy) throws SQLException {
        try (Statement listens = slow.createStatement();
                Statement notifies = noisy.createStatement()) {
            listens.execute("LISTEN other");
            listens.execute("BEGIN");
            listens.execute("SELECT 1");
            for (int i = 0; i < 1000; i++) {
                notifies.execute("SELECT pg_notify('other', repeat('x', 7000))");
            }
            throw new IllegalStateException("The queue is not full");
        } catch (SQLException e) {
            assertThat(e.getSQLState()).isEqualTo("54000");
        }
    }
}
