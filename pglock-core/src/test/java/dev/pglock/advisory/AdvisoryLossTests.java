package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.RenewalAnswer.Result;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sessions that end, answers that get lost, keys that are gone, processes that stand still or die. */
@Execution(ExecutionMode.CONCURRENT)
class AdvisoryLossTests {

    private static final Duration LEASE = ReplicaStores.LEASE;
    private static final Duration HEARTBEAT = Duration.ofMillis(300);
    private static final String NAMESPACE = "loss";

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final ConcurrentLinkedQueue<LossReason> losses = new ConcurrentLinkedQueue<>();
    private final List<LockEngine> engines = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        stores.close();
        wire.close();
    }

    private AdvisoryStore store(String label) {
        return stores.store(StoreIdentity.random(NAMESPACE, label));
    }

    private AdvisoryStore storeOnTheWire() {
        return stores.store(StoreIdentity.random(NAMESPACE, "A"), wire);
    }

    private LockEngine engine(AdvisoryStore store, String label) {
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.ADVISORY)
                        .withLease(LEASE, HEARTBEAT))
                .store(store)
                .listener(new LockListener() {
                    @Override
                    public void lost(LockHandle lock, LossReason reason) {
                        losses.add(reason);
                    }
                })
                .build();
        engines.add(engine);
        return engine;
    }

    private static Claim claim(String name) {
        return new Claim(name, key(name), LEASE, null, null);
    }

    private static long key(String name) {
        return KeyDerivation.SHA256.key(NAMESPACE, name);
    }

    private static ClaimAnswer.Granted granted(ClaimAnswer answer) {
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    private static Release release(String name, ClaimAnswer.Granted lock) {
        return new Release(name, key(name), lock.fence(), RunOutcome.SUCCEEDED, null, null, null, false);
    }

    private static Result renewed(AdvisoryStore store, String name, ClaimAnswer.Granted lock) {
        return store.renew(
                        List.of(new Renewal(name, lock.fence(), LEASE, null)), Duration.ofSeconds(1), Caller.HEARTBEAT)
                .get(0)
                .result();
    }

    private LockHandle taken(LockEngine engine, String name) {
        return engine.tryAcquire(LockRequest.of(name)).orElseThrow();
    }

    @RepeatedTest(5)
    void whenItsSessionIsTerminatedAllLocksAreLostWithinAHeartbeatAndNoneComesBack() throws Exception {
        LockEngine a = engine(store("A"), "A");
        LockEngine b = engine(store("B"), "B");
        CountDownLatch callbacks = new CountDownLatch(20);
        List<LockHandle> locks = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            LockHandle lock = taken(a, "name " + i);
            lock.onLost(callbacks::countDown);
            locks.add(lock);
        }

        assertThat(database.terminate("pglock:" + NAMESPACE + ":A")).isPositive();

        assertThat(callbacks.await(HEARTBEAT.toMillis() + 1000, TimeUnit.MILLISECONDS))
                .isTrue();
        await().untilAsserted(() -> assertThat(losses).hasSize(20).containsOnly(LossReason.SESSION_ENDED));
        LockHandle anew = taken(a, "name 0 anew");
        LockHandle other = taken(b, "name 1");
        assertThat(other.fence()).isGreaterThan(locks.get(1).fence());
        assertThat(anew.isHeld()).isTrue();
        assertThat(locks).noneMatch(LockHandle::isHeld);
        assertThat(locks).noneMatch(LockHandle::release);
        assertThat(other.isHeld()).isTrue();
        assertThat(other.release()).isTrue();
        assertThat(anew.release()).isTrue();
    }

    @Test
    void aSessionThatEndedWhileItHeldNothingIsReplacedUnnoticed() {
        AdvisoryStore a = storeOnTheWire();
        for (int i = 0; i < 20; i++) {
            ClaimAnswer.Granted lock = granted(a.claim(claim("name")));
            assertThat(a.release(release("name", lock))).isTrue();
            if (i % 2 == 0) {
                database.terminate("pglock:" + NAMESPACE + ":A");
            } else {
                wire.cut();
            }
        }
        assertThat(losses).isEmpty();
    }

    @Test
    void theServerNoticesSoonThatTheProcessBehindALockSessionHasVanished() throws Exception {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
        Duration lease = Duration.ofSeconds(30);
        LockSession session = new LockSessions(stores.sessions(identity, database.url(), lease), lease).open();
        String settings = session.ask(
                lease,
                connection -> TestDatabase.text(
                        connection,
                        "SELECT concat_ws(' ', current_setting('tcp_keepalives_idle'),"
                                + " current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'),"
                                + " current_setting('tcp_user_timeout'))"));
        session.close();
        assertThat(settings).isEqualTo("10 5 3 30000");
    }

    @Test
    void inABlackHoleManyClaimsEndTogetherAndNotOneAfterTheOther() throws Exception {
        AdvisoryStore a = storeOnTheWire();
        assertThat(a.release(release("name", granted(a.claim(claim("name")))))).isTrue();
        wire.stall();
        long asked = System.nanoTime();

        Concurrently.run(8, thread -> () -> {
            for (int i = 0; i < 2; i++) {
                assertThatExceptionOfType(LockStorageException.class)
                        .isThrownBy(() -> a.claim(claim("name-" + thread)));
            }
            return true;
        });

        assertThat(Duration.ofNanos(System.nanoTime() - asked)).isLessThan(LEASE.multipliedBy(3));
        wire.resume();
        assertThat(a.claim(claim("name"))).isInstanceOf(ClaimAnswer.Granted.class);
    }

    @Test
    void anErrorOnALiveSessionIsNoLoss() throws Exception {
        AdvisoryStore a = store("A");
        ClaimAnswer.Granted lock = granted(a.claim(claim("held")));
        try (Connection direct = database.direct()) {
            direct.setAutoCommit(false);
            TestDatabase.text(direct, "SELECT 1 FROM (SELECT pg_advisory_xact_lock(1)) AS x");
            direct.createStatement().execute("LOCK TABLE pglock_lease");
            assertThat(a.claim(claim("other"))).as("our lock_timeout").isInstanceOf(ClaimAnswer.Denied.class);
            direct.rollback();
        }
        database.execute("ALTER TABLE pglock_lease RENAME COLUMN paused TO resting");
        assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> a.claim(claim("other")));
        database.execute("ALTER TABLE pglock_lease RENAME COLUMN resting TO paused");

        assertThat(renewed(a, "held", lock)).isEqualTo(Result.RENEWED);
        assertThat(stores.keysHeld()).isEqualTo(1);
        assertThat(a.release(release("held", lock))).isTrue();
        assertThat(stores.keysHeld()).isZero();
    }

    /** Of two errors in a row, the second one meets what is done about the first. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aKeyThatAFailedClaimCouldNotGiveBackIsGivenBackByWhoeverSpeaksNextOrWithTheSession(boolean holdsMore)
            throws Exception {
        database.execute("ALTER DATABASE " + database.name() + " SET search_path = broken, pg_catalog, public");
        AdvisoryStore a = store("A");
        AdvisoryStore b = store("B");
        ClaimAnswer.Granted lock = holdsMore ? granted(a.claim(claim("held"))) : null;
        database.execute("""
                CREATE SCHEMA broken;
                CREATE FUNCTION broken.pg_advisory_unlock(bigint) RETURNS boolean LANGUAGE plpgsql
                  AS $$ BEGIN RAISE 'cancelled' USING ERRCODE = '57014'; END $$;
                CREATE FUNCTION broken.refuse() RETURNS trigger LANGUAGE plpgsql
                  AS $$ BEGIN RAISE 'cancelled' USING ERRCODE = '57014'; END $$;
                CREATE TRIGGER refuse BEFORE INSERT ON public.pglock_lease FOR EACH ROW EXECUTE FUNCTION broken.refuse();
                """);

        assertThat(a.claim(new Claim("name", key("name"), LEASE, null, "payload")))
                .isInstanceOf(ClaimAnswer.Denied.class);

        if (lock == null) {
            await().atMost(LEASE.dividedBy(2))
                    .untilAsserted(() -> assertThat(stores.keysHeld()).isZero());
            database.execute("DROP SCHEMA broken CASCADE");
        } else {
            assertThat(a.untilTidyUp()).as("is planned at once").isEqualTo(Duration.ZERO);
            database.execute("DROP SCHEMA broken CASCADE");
            assertThat(renewed(a, "held", lock)).isEqualTo(Result.RENEWED);
            assertThat(stores.keysHeld()).isEqualTo(1);
            assertThat(a.release(release("held", lock))).isTrue();
        }
        for (AdvisoryStore store : List.of(a, b)) {
            assertThat(store.release(release("name", granted(store.claim(claim("name"))))))
                    .isTrue();
        }
        assertThat(stores.keysHeld()).isZero();
    }

    @Test
    void whateverIsInTheWayOfTheTableIsNotInTheWayOfTheHeartbeat() throws Exception {
        AdvisoryStore a = store("A");
        ClaimAnswer.Granted lock = granted(a.claim(claim("held")));
        try (Connection direct = database.direct()) {
            direct.setAutoCommit(false);
            direct.createStatement().execute("LOCK TABLE pglock_lease");
            assertThat(renewed(a, "held", lock)).isEqualTo(Result.RENEWED);
            direct.rollback();
        }
        database.execute("ALTER TABLE pglock_lease RENAME COLUMN resign_at TO asked_at");
        assertThat(renewed(a, "held", lock)).isEqualTo(Result.RENEWED);
        database.execute("ALTER TABLE pglock_lease RENAME COLUMN asked_at TO resign_at");

        assertThat(a.resign("held", key("held"), "elsewhere")).isTrue();
        assertThat(a.renew(
                        List.of(new Renewal("held", lock.fence(), LEASE, null)),
                        Duration.ofSeconds(1),
                        Caller.HEARTBEAT))
                .extracting(RenewalAnswer::resign)
                .containsExactly("elsewhere");
    }

    /** Each has the session for as long as a row or table lock is waited for, and the last have hardly any time left. */
    @Test
    void manyClaimsThatWaitForALockedTableEndNoSession() throws Exception {
        AdvisoryStore a = store("A");
        ClaimAnswer.Granted lock = granted(a.claim(claim("held")));
        String session = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
                + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        long pid = database.number(session);
        try (Connection direct = database.direct()) {
            direct.setAutoCommit(false);
            direct.createStatement().execute("LOCK TABLE pglock_lease");

            Concurrently.run(10, thread -> () -> {
                try {
                    assertThat(a.claim(claim("name " + thread))).isInstanceOf(ClaimAnswer.Denied.class);
                } catch (LockStorageException e) {
                    assertThat(e).hasMessageContaining("busy for too long");
                }
                return true;
            });

            assertThat(renewed(a, "held", lock)).isEqualTo(Result.RENEWED);
            direct.rollback();
        }
        assertThat(database.number(session)).isEqualTo(pid);
        assertThat(a.release(release("held", lock))).isTrue();
        assertThat(stores.keysHeld()).isZero();
    }

    /** What was lost with the session is the key, not the tick that the claim had remembered. */
    @ParameterizedTest
    @MethodSource
    void aTickWhoseGrantWasNotHeardOfIsGrantedAgain(Tick tick) {
        AdvisoryStore a = storeOnTheWire();
        AdvisoryStore b = store("B");
        for (String name : List.of("known", "new")) {
            if (name.equals("known")) {
                database.execute(
                        "INSERT INTO pglock_lease (namespace, name, fence, acquired_at, expires_at, released_at)"
                                + " VALUES ('" + NAMESPACE
                                + "', 'known', 1, now(), now() + interval '1 microsecond', now())");
            }
            Claim claim = new Claim(name, key(name), LEASE, null, null, tick);
            assertThat(a.release(release("warm", granted(a.claim(claim("warm"))))))
                    .as("that there is a session")
                    .isTrue();
            wire.loseNextAnswer();

            ClaimAnswer.Granted lock = granted(a.claim(claim));

            String remembered = database.text("SELECT ticks FROM pglock_lease WHERE name = ?", name);
            assertThat(lock.fence())
                    .isGreaterThanOrEqualTo(database.number("SELECT fence FROM pglock_lease WHERE name = ?", name));
            assertThat(a.release(release(name, lock))).isTrue();
            for (AdvisoryStore other : List.of(a, b)) {
                assertThat(other.claim(claim))
                        .isInstanceOfSatisfying(
                                ClaimAnswer.Denied.class,
                                denied -> assertThat(denied.denial().reason()).isEqualTo(DenialReason.TICK_DONE));
            }
            assertThat(database.text("SELECT ticks FROM pglock_lease WHERE name = ?", name))
                    .as("once, not twice")
                    .isEqualTo(remembered);
        }
    }

    static List<Tick> aTickWhoseGrantWasNotHeardOfIsGrantedAgain() {
        return List.of(
                new Tick.Moment("own", Instant.now()), new Tick.Rate("every ten minutes", Duration.ofMinutes(10)));
    }

    @Test
    void aKeyThatIsNotHeldAnyMoreIsLostAndItsReleaseSaysSo() {
        AdvisoryStore a = storeOnTheWire();
        ClaimAnswer.Granted lock = granted(a.claim(claim("name")));
        database.terminate("pglock:" + NAMESPACE + ":A");

        assertThat(a.release(release("name", lock))).isFalse();
        assertThat(renewed(a, "name", lock)).isEqualTo(Result.SESSION_ENDED);
    }

    @Test
    void aStandbyIsRefusedAndAServerThatBecomesOneIsALoss() {
        // A server in recovery, as far as our sessions can see
        database.execute("""
                CREATE SCHEMA recovery;
                CREATE TABLE recovery.state AS SELECT false AS standby;
                CREATE FUNCTION recovery.pg_is_in_recovery() RETURNS boolean LANGUAGE sql
                  AS 'SELECT standby FROM recovery.state';
                """);
        database.execute("ALTER DATABASE " + database.name() + " SET search_path = recovery, pg_catalog, public");
        AdvisoryStore a = store("A");
        ClaimAnswer.Granted lock = granted(a.claim(claim("name")));
        assertThat(renewed(a, "name", lock)).isEqualTo(Result.RENEWED);

        database.execute("UPDATE recovery.state SET standby = true");

        assertThat(renewed(a, "name", lock)).isEqualTo(Result.SESSION_ENDED);
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> a.claim(claim("name")))
                .withMessageContaining("standby");
        await().until(() -> stores.keysHeld() == 0);
        database.execute("UPDATE recovery.state SET standby = false");
        granted(a.claim(claim("name")));
    }

    /** Answers lost, connections cut, backends terminated, releases that never come, at any moment of a cycle. */
    @Test
    void afterTwoThousandCyclesWithFailuresNoKeyIsLeft() {
        AdvisoryStore a = storeOnTheWire();
        AdvisoryStore b = store("B");
        AtomicInteger grants = new AtomicInteger();
        for (int i = 0; i < 2000; i++) {
            String name = "name " + i % 7;
            switch (i % 40) {
                case 3 -> wire.loseNextAnswer();
                case 11 -> wire.cut();
                case 19 -> database.terminate("pglock:" + NAMESPACE + ":A");
                default -> {}
            }
            try {
                if (a.claim(claim(name)) instanceof ClaimAnswer.Granted lock) {
                    grants.incrementAndGet();
                    if (i % 40 == 27) {
                        wire.loseNextAnswer();
                    }
                    if (i % 40 != 33) {
                        boolean ignored = a.release(release(name, lock));
                    }
                }
            } catch (LockStorageException e) {
                assertThat(e.getMessage()).containsAnyOf("could not be", "answered later than its lease");
            }
        }
        // Those whose release never came are given back by their next claim.
        for (int i = 0; i < 7; i++) {
            String name = "name " + i;
            await().until(() ->
                    a.claim(claim(name)) instanceof ClaimAnswer.Granted lock && a.release(release(name, lock)));
            assertThat(b.release(release(name, granted(b.claim(claim(name)))))).isTrue();
        }

        assertThat(grants.get()).isGreaterThan(1800);
        assertThat(stores.keysHeld()).isZero();
    }

    /** Sessions are ended at any moment of what four threads on two replicas do with three names. */
    @Test
    void sessionsThatAreEndedUnderClaimsLeaveNobodyWithALockThatAnotherHas() throws Exception {
        LockEngine a = engine(store("A"), "A");
        LockEngine b = engine(store("B"), "B");
        Map<String, Set<LockHandle>> holders = new ConcurrentHashMap<>();
        AtomicInteger grants = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        Thread administrator = new Thread(() -> {
            while (!over.get()) {
                database.terminate("pglock:" + NAMESPACE + ":%");
            }
        });
        administrator.start();
        try {
            Concurrently.run(4, i -> () -> {
                LockEngine engine = i % 2 == 0 ? a : b;
                for (int n = 0; n < 150 || grants.get() <= 50; n++) {
                    String name = "name " + n % 3;
                    try {
                        LockHandle lock =
                                engine.tryAcquire(LockRequest.of(name)).orElse(null);
                        if (lock != null) {
                            grants.incrementAndGet();
                            Set<LockHandle> all = holders.computeIfAbsent(name, key -> ConcurrentHashMap.newKeySet());
                            all.add(lock);
                            // Whoever came before has been lost, or is about to see it: never two for longer.
                            await().atMost(HEARTBEAT.multipliedBy(3))
                                    .pollInterval(Duration.ofMillis(2))
                                    .until(() -> all.stream()
                                                    .filter(LockHandle::isHeld)
                                                    .count()
                                            <= 1);
                            all.remove(lock);
                            lock.close();
                        }
                    } catch (LockStorageException e) {
                        assertThat(e.getMessage()).containsAnyOf("could not be", "answered later than its lease");
                    }
                }
                return null;
            });
        } finally {
            over.set(true);
            administrator.join();
        }
        assertThat(grants.get()).isGreaterThan(50);
        for (LockEngine engine : List.of(a, b)) {
            for (int i = 0; i < 3; i++) {
                String name = "name " + i;
                await().ignoreExceptions().until(() -> {
                    engine.tryAcquire(LockRequest.of(name)).orElseThrow().close();
                    return true;
                });
            }
        }
        await().until(() -> stores.keysHeld() == 0);
    }

    @Test
    void inABlackHoleTheHolderKnowsBeforeTheServerFreesTheLock() throws Exception {
        LockEngine a = engine(storeOnTheWire(), "A");
        LockEngine b = engine(store("B"), "B");
        LockHandle lock = taken(a, "name");
        CountDownLatch lost = new CountDownLatch(1);
        lock.onLost(lost::countDown);

        wire.stall();
        LockHandle next = b.acquire(LockRequest.of("name").waitTimeout(Duration.ofSeconds(10)));

        assertThat(lock.isHeld()).isFalse();
        assertThat(lost.await(1, TimeUnit.SECONDS)).isTrue();
        assertThat(next.fence()).isGreaterThan(lock.fence());
    }

    @Test
    void aFrozenProcessIsFreedByTheServerAndKnowsOnWaking() throws Exception {
        Duration lease = Duration.ofSeconds(2);
        AdvisoryStore store = stores.store(StoreIdentity.random(Replica.NAMESPACE, "B"));
        try (Replica child = Replica.holding(database, "frozen", lease);
                LockEngine b = Replica.engine(store, "B", lease)) {
            child.process().freeze();
            long stopped = System.nanoTime();

            LockHandle lock = b.acquire(LockRequest.of("frozen").waitTimeout(Duration.ofSeconds(20)));

            assertThat(Duration.ofNanos(System.nanoTime() - stopped)).isLessThan(lease.plusSeconds(1));
            child.process().thaw();
            child.expect("AWAKE AND LOST");
            assertThat(lock.release()).isTrue();
        }
    }

    @RepeatedTest(3)
    void aKilledProcessIsSucceededByAWaiterInLessThanASecond() throws Exception {
        Duration lease = Duration.ofSeconds(30);
        try (Replica child = Replica.holding(database, "killed", lease)) {
            CountDownLatch waits = new CountDownLatch(8);
            Thread killer = new Thread(() -> {
                try {
                    // Late enough for its pauses to have grown
                    waits.await();
                    child.process().kill();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            long[] killedAt = new long[1];
            LockEngine waiter = LockEngine.builder(
                            EngineSettings.defaults(Replica.NAMESPACE, "C", LockStrategy.ADVISORY)
                                    .withLease(lease, null))
                    .store(stores.store(StoreIdentity.random(Replica.NAMESPACE, "C"), database.url(), lease, 100))
                    .listener(new LockListener() {
                        @Override
                        public void denied(dev.pglock.Denial denial) {
                            if (waits.getCount() == 1) {
                                killedAt[0] = System.nanoTime();
                            }
                            waits.countDown();
                        }
                    })
                    .build();
            engines.add(waiter);
            killer.start();

            LockHandle lock = waiter.acquire(LockRequest.of("killed").waitTimeout(Duration.ofSeconds(30)));

            Duration takeOver = Duration.ofNanos(System.nanoTime() - killedAt[0]);
            System.out.println("take-over after kill -9: " + takeOver.toMillis() + " ms");
            assertThat(takeOver).isLessThan(Duration.ofSeconds(1));
            lock.close();
        }
    }
}
