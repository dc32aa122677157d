package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.advisory.AdvisoryStores;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Replicas that wait for each other's locks on a real server, told of releases by it. */
class WakeUpTests {

    private static final String NAMESPACE = "waiting";
    private static final Duration LEASE = Duration.ofSeconds(3);
    private static final Duration HEARTBEAT = Duration.ofMillis(300);

    /** Far below the poll: whoever has the lock by then was told. */
    private static final Duration TOLD = Duration.ofMillis(500);

    /** A poll, and room. */
    private static final Duration POLLED = Duration.ofMillis(2500);

    private final AdvisoryStores stores = AdvisoryStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final List<LockEngine> engines = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private final LockEngine a = engine("A", database.url(), database.url());
    private final LockEngine b = engine("B", database.url(), database.url());

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        threads.shutdownNow();
        stores.close();
        wire.close();
    }

    /** Both strategies on one registry; the lease has two connections, as by default. */
    private LockEngine engine(String label, String url, String listenUrl) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        StoreIdentity listener = StoreIdentity.random(NAMESPACE, label + "-listens");
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.LEASE)
                        .withLease(LEASE, HEARTBEAT))
                .store(stores.lease(identity, url, LEASE, 2))
                .store(stores.store(identity, url, LEASE, 100))
                .wakeUps(new NotifiedWakeUps(stores.sessions(listener, listenUrl, LEASE)))
                .build();
        engines.add(engine);
        return engine;
    }

    private static LockRequest request(String name, LockStrategy strategy) {
        return LockRequest.of(name).strategy(strategy).waitTimeout(Duration.ofSeconds(20));
    }

    private static LockHandle granted(LockEngine engine, LockRequest request) {
        return engine.tryAcquire(request).orElseThrow();
    }

    private Future<Duration> waits(LockEngine engine, LockRequest request, Callable<?> whenGranted) {
        return threads.submit(() -> {
            long begun = System.nanoTime();
            try (LockHandle lock = engine.acquire(request)) {
                Duration waited = Duration.ofNanos(System.nanoTime() - begun);
                whenGranted.call();
                return waited;
            }
        });
    }

    private Future<Long> grantedAt(LockEngine engine, LockRequest request) {
        return threads.submit(() -> {
            try (LockHandle lock = engine.acquire(request)) {
                return System.nanoTime();
            }
        });
    }

    /** How many replicas have announced that somebody waits for the lock. */
    private long announced(String name) {
        return database.number(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
                        + " AND classid = 1885826155 AND objid = ?::int::oid"
                        + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                WakeUps.waitKey(KeyDerivation.SHA256.key(NAMESPACE, name)));
    }

    private void awaitAnnounced(String name, long replicas) {
        await().pollInterval(Duration.ofMillis(5)).until(() -> announced(name) == replicas);
    }

    private long listening() {
        return database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                + " AND application_name LIKE 'pglock:waiting:%-listens'");
    }

    // ---- hand-over

    @ParameterizedTest
    @CsvSource({"LEASE, LEASE", "ADVISORY, ADVISORY", "LEASE, ADVISORY", "ADVISORY, LEASE"})
    void aReleaseWakesAWaiterOnAnotherReplica(LockStrategy holds, LockStrategy waits) throws Exception {
        LockHandle lock = granted(a, request("n", holds));
        Future<Long> waiter = grantedAt(b, request("n", waits));
        awaitAnnounced("n", 1);

        long released = System.nanoTime();
        lock.close();

        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(TOLD);
    }
}
