package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What an advisory lock costs, counted on the wire and in the server. */
class AdvisoryCostTests {

    private static final String NAMESPACE = Replica.NAMESPACE;
    private static final Duration LONG = Duration.ofSeconds(30);

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final AdvisoryStore a = stores.store(StoreIdentity.random(NAMESPACE, "A"), database.url(wire), LONG, 1100);
    private final AdvisoryStore b = stores.store(StoreIdentity.random(NAMESPACE, "B"), database.url(), LONG, 1100);

    @BeforeEach
    void openTheSession() {
        a.release(release("known", granted(a, "known")));
    }

    @AfterEach
    void close() throws Exception {
        stores.close();
        wire.close();
    }

    private static Claim claim(String name) {
        return new Claim(name, KeyDerivation.SHA256.key(NAMESPACE, name), LONG, null, null);
    }

    private static ClaimAnswer.Granted granted(AdvisoryStore store, String name) {
        ClaimAnswer answer = store.claim(claim(name));
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    private static Denial denied(AdvisoryStore store, String name) {
        return ((ClaimAnswer.Denied) store.claim(claim(name))).denial();
    }

    private static Release release(String name, ClaimAnswer.Granted lock) {
        return new Release(
                name,
                KeyDerivation.SHA256.key(NAMESPACE, name),
                lock.fence(),
                RunOutcome.SUCCEEDED,
                null,
                null,
                null,
                false);
    }

    private void assertRoundTrips(int expected, Runnable work) {
        long trips = wire.roundTrips();
        work.run();
        assertThat(wire.roundTrips() - trips).as("round trips").isEqualTo(expected);
    }

    @Test
    void aClaimAndAReleaseAreOneRoundTripEachAndWriteNoRow() {
        for (int i = 0; i < 12; i++) {
            String name = i % 2 == 0 ? "known" : "new " + i;
            ClaimAnswer.Granted[] lock = new ClaimAnswer.Granted[1];
            assertRoundTrips(1, () -> lock[0] = granted(a, name));
            assertRoundTrips(1, () -> a.release(release(name, lock[0])));
        }
        assertThat(database.number("SELECT count(*) FROM pglock_lease")).isZero();
    }

    /** Only the first fire time that a replica ever asks with needs to know the server's time, once. */
    @Test
    void aTickIsRememberedInTheMessageOfTheClaim() {
        for (int i = 0; i < 12; i++) {
            Tick tick = new Tick.Moment("own", Instant.now());
            Claim claim = new Claim("known", KeyDerivation.SHA256.key(NAMESPACE, "known"), LONG, null, null, tick);
            ClaimAnswer.Granted[] lock = new ClaimAnswer.Granted[1];
            assertRoundTrips(1, () -> lock[0] = (ClaimAnswer.Granted) a.claim(claim));
            assertRoundTrips(1, () -> a.release(release("known", lock[0])));
            assertRoundTrips(1, () -> assertThat(a.claim(claim)).isInstanceOf(ClaimAnswer.Denied.class));
        }
    }

    @Test
    void aThousandHeldLocksAreOneConnectionAndOneStatementPerHeartbeat() {
        List<Renewal> renewals = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            renewals.add(new Renewal("name " + i, granted(a, "name " + i).fence(), LONG, null));
        }
        assertThat(wire.connections()).isEqualTo(1);
        List<RenewalAnswer> answers = new ArrayList<>();
        long statements = wire.statements();
        long begun = System.nanoTime();

        assertRoundTrips(1, () -> answers.addAll(a.renew(renewals, Duration.ofSeconds(5), Caller.HEARTBEAT)));

        assertThat(wire.statements() - statements).isEqualTo(1);
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(1));
        assertThat(answers).hasSize(1000).allMatch(answer -> answer.result() == RenewalAnswer.Result.RENEWED);
    }

    @Test
    void theHeartbeatTakesNoKeyASecondTime() {
        ClaimAnswer.Granted lock = granted(a, "name");
        for (int i = 0; i < 20; i++) {
            a.renew(List.of(new Renewal("name", lock.fence(), LONG, null)), Duration.ofSeconds(5), Caller.HEARTBEAT);
        }

        assertThat(a.release(release("name", lock))).isTrue();
        assertThat(stores.keysHeld()).isZero();
        granted(b, "name");
    }

    @Test
    void aDenialReadsOnly() throws Exception {
        granted(b, "known");
        for (int i = 0; i < 10; i++) {
            assertRoundTrips(1, () -> denied(a, "known"));
        }
        try (Connection direct = database.direct()) {
            // Once in fifteen seconds the server itself may write some bytes.
            await().pollInterval(Duration.ofMillis(1)).untilAsserted(() -> {
                String before = written(direct);
                for (int i = 0; i < 1000; i++) {
                    assertThat(denied(a, "known").reason()).isEqualTo(DenialReason.HELD);
                }
                assertThat(written(direct)).isEqualTo(before);
            });
        }
    }

    private static String written(Connection direct) throws Exception {
        return TestDatabase.text(
                direct, "SELECT pg_current_wal_insert_lsn() || ' ' || pg_snapshot_xmax(pg_current_snapshot())");
    }

    @Test
    void aHolderIsIdleOutsideEveryTransaction() {
        granted(a, "name");

        assertThat(database.text(
                        "SELECT state || ' ' || coalesce(xact_start::text, '-') || ' ' || coalesce(backend_xmin::text, '-')"
                                + " FROM pg_stat_activity WHERE application_name = 'pglock:" + NAMESPACE + ":A'"))
                .isEqualTo("idle - -");
    }

    @Test
    void anIndexIsCreatedConcurrentlyWhileLocksAreHeldAndOthersWait() throws Exception {
        database.execute("CREATE TABLE business (id int)");
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (LockEngine holder = Replica.engine(a, "A", LONG);
                LockEngine waiter = LockEngine.builder(
                                EngineSettings.defaults(Replica.NAMESPACE, "B", LockStrategy.ADVISORY)
                                        .withLease(LONG, null))
                        .store(b)
                        .wakeUps(new NotifiedWakeUps(
                                stores.sessions(StoreIdentity.random(NAMESPACE, "B"), database.url(), LONG)))
                        .build();
                Connection direct = database.direct();
                Statement statement = direct.createStatement()) {
            List<LockHandle> locks = new ArrayList<>();
            List<Future<LockHandle>> waiters = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                LockRequest request = LockRequest.of("name " + i);
                locks.add(holder.tryAcquire(request).orElseThrow());
                waiters.add(threads.submit(() -> waiter.acquire(request)));
            }
            await().until(() -> database.isTrue("SELECT count(*) = 4 FROM pg_locks WHERE locktype = 'advisory'"
                    + " AND objsubid = 2 AND mode = 'ShareLock' AND granted AND database ="
                    + " (SELECT oid FROM pg_database WHERE datname = current_database())"));
            long begun = System.nanoTime();

            statement.execute("CREATE INDEX CONCURRENTLY ON business (id)");

            assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
            assertThat(waiters).noneMatch(Future::isDone);
            locks.forEach(LockHandle::close);
            for (Future<LockHandle> one : waiters) {
                one.get(5, TimeUnit.SECONDS).close();
            }
        } finally {
            threads.shutdownNow();
        }
    }
}
