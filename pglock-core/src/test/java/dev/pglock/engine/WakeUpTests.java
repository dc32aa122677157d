package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStrategy;
import dev.pglock.LockTimeoutException;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.PgBouncer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;

/** Replicas that wait for each other's locks on a real server, told of releases by it. */
class WakeUpTests {

    private static final String NAMESPACE = "waiting";
    private static final Duration LEASE = Duration.ofSeconds(3);
    private static final Duration HEARTBEAT = Duration.ofMillis(300);

    /** Far below the poll: whoever has the lock by then was told. */
    private static final Duration TOLD = Duration.ofMillis(700);

    /** A poll, and room. */
    private static final Duration POLLED = Duration.ofMillis(2500);

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final List<LockEngine> engines = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private final LockEngine a = engine("A");
    private final LockEngine b = engine("B");

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        threads.shutdownNow();
        stores.close();
        wire.close();
    }

    private LockEngine engine(String label) {
        return engine(label, database.url(), database.url(), LEASE);
    }

    private LockEngine engine(String label, TcpProxy proxy, Duration lease) {
        return engine(label, database.url(proxy), database.url(), lease);
    }

    /** Both strategies on one registry; the lease has two connections, as by default. */
    private LockEngine engine(String label, String url, String listenUrl, Duration lease) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        return start(
                LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.LEASE)
                                .withLease(lease, lease.equals(LEASE) ? HEARTBEAT : null))
                        .store(stores.lease(identity, url, lease, 2))
                        .store(stores.store(identity, url, lease, 100)),
                label,
                listenUrl);
    }

    private FaultyStore store(String label, LockStrategy strategy) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        return new FaultyStore(strategy == LockStrategy.LEASE ? stores.lease(identity) : stores.store(identity));
    }

    private LockEngine engine(String label, LockStore store) {
        return start(
                LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, store.strategy())
                                .withLease(ReplicaStores.LEASE, HEARTBEAT))
                        .store(store),
                label,
                database.url());
    }

    private LockEngine start(LockEngine.Builder builder, String label, String listenUrl) {
        StoreIdentity listener = StoreIdentity.random(NAMESPACE, label + "-listens");
        LockEngine engine = builder.wakeUps(new NotifiedWakeUps(stores.sessions(listener, listenUrl, LEASE)))
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
                waitKey(name));
    }

    private static int waitKey(String name) {
        return WakeUps.waitKey(KeyDerivation.SHA256.key(NAMESPACE, name));
    }

    private void awaitAnnounced(String name, long replicas) {
        await().pollInterval(Duration.ofMillis(5)).until(() -> announced(name) == replicas);
    }

    private long listening() {
        return database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                + " AND application_name LIKE 'pglock:waiting:%-listens'");
    }

    /** Sessions of a replica beside the one that listens. */
    private long sessions(String label) {
        return database.number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ?",
                "pglock:waiting:" + label);
    }

    private long busySessions(String label) {
        return database.number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ?"
                        + " AND state <> 'idle'",
                "pglock:waiting:" + label);
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

    /** Between the denial and the announcement nobody is told of a release: whoever has announced himself asks again. */
    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aReleaseRightAfterTheDenialIsNotLost(LockStrategy strategy) throws Exception {
        LockHandle lock = granted(a, request("n", strategy));
        FaultyStore store = store("C", strategy);
        store.afterDenial = lock::close;
        LockEngine c = engine("C", store);

        Future<Long> waiter = grantedAt(c, request("n", strategy));

        await().until(() -> store.claims.get() > 0);
        long denied = System.nanoTime();
        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - denied)).isLessThan(TOLD);
    }

    /** Who announces himself while somebody releases waits for the end of that statement, and asks after it. */
    @Test
    void whoAnnouncesHimselfBehindAReleaserAsksAfterItsCommit() throws Exception {
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
        try (Connection releaser = database.direct();
                Statement statement = releaser.createStatement()) {
            releaser.setAutoCommit(false);
            statement.execute("SELECT pg_advisory_xact_lock(1885826155, " + waitKey("n") + ")");
            Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
            await().until(() -> database.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                            + " AND objsubid = 2 AND NOT granted AND classid = 1885826155")
                    == 1);
            statement.execute("UPDATE pglock_lease SET holder = NULL WHERE fence = " + lock.fence());

            long released = System.nanoTime();
            releaser.commit();

            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD);
        }
    }

    /** Short holds, so that releases meet denials, announcements and withdrawals at every moment. */
    @ParameterizedTest
    @CsvSource({"LEASE, LEASE", "ADVISORY, ADVISORY", "LEASE, ADVISORY"})
    void noReleaseIsLostHoweverItMeetsAWaiter(LockStrategy one, LockStrategy other) throws Exception {
        List<Future<Duration>> longest = List.of(
                threads.submit(() -> longestWait(a, request("n", one))),
                threads.submit(() -> longestWait(b, request("n", other))));
        for (Future<Duration> wait : longest) {
            assertThat(wait.get(60, TimeUnit.SECONDS)).isLessThan(Duration.ofMillis(800));
        }
    }

    private static Duration longestWait(LockEngine engine, LockRequest request) throws InterruptedException {
        Duration longest = Duration.ZERO;
        for (int i = 0; i < 200; i++) {
            long begun = System.nanoTime();
            try (LockHandle lock = engine.acquire(request)) {
                Duration waited = Duration.ofNanos(System.nanoTime() - begun);
                longest = waited.compareTo(longest) > 0 ? waited : longest;
                LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(8_000_000));
            }
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(3_000_000));
        }
        return longest;
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aForcedReleaseWakesTheWaiter(LockStrategy strategy) throws Exception {
        LockHandle lock = granted(a, request("n", strategy));
        Future<Long> waiter = grantedAt(b, request("n", strategy));
        awaitAnnounced("n", 1);

        assertThat(engine("C").forceRelease("n", "the test says so", true)).isTrue();
        long forced = System.nanoTime();

        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - forced)).isLessThan(TOLD);
        await().until(() -> !lock.isHeld());
    }

    @Test
    void aMinimumHoldIsWaitedForToItsEnd() throws Exception {
        Duration hold = Duration.ofMillis(2200);
        long begun = System.nanoTime();
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE).minHold(hold));
        FaultyStore store = store("C", LockStrategy.LEASE);
        Future<Long> waiter = grantedAt(engine("C", store), request("n", LockStrategy.LEASE));
        awaitAnnounced("n", 1);
        lock.close();

        Duration waited = Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - begun);

        assertThat(waited).isBetween(hold.minusMillis(50), hold.plusSeconds(1));
        // Denied, watched, released, twice polled, granted
        assertThat(store.claims).hasValueLessThanOrEqualTo(6);
    }

    @Test
    void everyWaiterGetsItsTurnWhenManyReplicasWait() throws Exception {
        List<LockEngine> replicas = new ArrayList<>(List.of(b));
        IntStream.range(0, 4).forEach(i -> replicas.add(engine("replica " + i)));
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
        List<Future<Long>> waiters = new ArrayList<>();
        replicas.forEach(replica -> waiters.add(grantedAt(replica, request("n", LockStrategy.LEASE))));
        awaitAnnounced("n", replicas.size());

        long released = System.nanoTime();
        lock.close();

        for (Future<Long> waiter : waiters) {
            assertThat(Duration.ofNanos(waiter.get(20, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD.multipliedBy(2));
        }
    }

    // ---- what it costs

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void nobodyIsToldOfAReleaseThatNobodyWaitsFor(LockStrategy strategy) throws Exception {
        try (Connection observer = database.direct();
                Statement statement = observer.createStatement()) {
            statement.execute("LISTEN pglock");
            for (int i = 0; i < 20; i++) {
                granted(a, request("n", strategy)).close();
            }
            assertThat(notifications(observer, 300)).isZero();

            LockHandle lock = granted(a, request("n", strategy));
            Future<Long> waiter = grantedAt(b, request("n", strategy));
            awaitAnnounced("n", 1);
            lock.close();
            waiter.get(10, TimeUnit.SECONDS);
            assertThat(notifications(observer, 5_000)).isPositive();

            awaitAnnounced("n", 0);
            notifications(observer, 1);
            granted(a, request("n", strategy)).close();
            assertThat(notifications(observer, 300)).isZero();
        }
    }

    private static int notifications(Connection observer, int millis) throws SQLException {
        return observer.unwrap(PGConnection.class).getNotifications(millis).length;
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aReleaseThatWakesIsStillOneStatementInOneRoundTrip(LockStrategy strategy) throws Exception {
        LockEngine counted = engine("counted", wire, Duration.ofSeconds(30));
        for (int i = 0; i < 10; i++) {
            LockHandle lock = granted(counted, request("n", strategy));
            Future<Long> waiter = grantedAt(b, request("n", strategy));
            awaitAnnounced("n", 1);
            long statements = wire.statements();
            long trips = wire.roundTrips();

            lock.close();

            assertThat(wire.statements() - statements).as("statements").isOne();
            assertThat(wire.roundTrips() - trips).as("round trips").isOne();
            waiter.get(10, TimeUnit.SECONDS);
            awaitAnnounced("n", 0);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aWaiterAsksOnceASecondAtMost(LockStrategy strategy) throws Exception {
        LockHandle lock = granted(a, request("n", strategy));
        FaultyStore store = store("C", strategy);
        Future<Long> waiter = grantedAt(engine("C", store), request("n", strategy));
        awaitAnnounced("n", 1);
        await().until(() -> store.claims.get() >= 2);
        int before = store.claims.get();
        assertThat(before).as("before and after the announcement").isLessThanOrEqualTo(3);

        TimeUnit.SECONDS.sleep(5);

        // Just under a second where the holder may vanish at any moment
        assertThat(store.claims.get() - before).isBetween(3, strategy == LockStrategy.LEASE ? 5 : 6);
        lock.close();
        waiter.get(10, TimeUnit.SECONDS);
    }

    @Test
    void fiftyWaitersNeedOneConnectionBesideTheOneThatListens() throws Exception {
        List<LockHandle> locks = new ArrayList<>();
        List<Future<Long>> waiters = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            LockRequest request = request("n" + i, LockStrategy.LEASE);
            locks.add(granted(a, request));
            waiters.add(grantedAt(b, request));
        }
        awaitAnnounced("n49", 1);
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(3);
        while (System.nanoTime() < until) {
            assertThat(sessions("B")).isLessThanOrEqualTo(1);
            assertThat(listening()).isOne();
            assertThat(database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                            + " AND application_name LIKE 'pglock:waiting:B%' AND state LIKE 'idle in transaction%'"))
                    .isZero();
        }
        assertThat(waiters).noneMatch(Future::isDone);
        locks.forEach(LockHandle::close);
        for (Future<Long> waiter : waiters) {
            waiter.get(10, TimeUnit.SECONDS);
        }
        await().atMost(Duration.ofSeconds(10)).until(() -> listening() == 0);
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void anIndexIsCreatedConcurrentlyWhileSomebodyListens(LockStrategy strategy) throws Exception {
        database.execute("CREATE TABLE business (id int)");
        LockHandle lock = granted(a, request("n", strategy));
        Future<Long> waiter = grantedAt(b, request("n", strategy));
        awaitAnnounced("n", 1);
        long begun = System.nanoTime();

        database.execute("CREATE INDEX CONCURRENTLY ON business (id)");

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
        assertThat(database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        + " AND application_name LIKE '%-listens' AND (state <> 'idle' OR backend_xmin IS NOT NULL)"))
                .isZero();
        lock.close();
        waiter.get(10, TimeUnit.SECONDS);
    }

    // ---- what goes wrong

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void anInterruptLeavesNothingBehind(LockStrategy strategy) throws Exception {
        LockHandle lock = granted(a, request("n", strategy));
        Future<Long> waiter = grantedAt(b, request("n", strategy));
        awaitAnnounced("n", 1);

        waiter.cancel(true);

        awaitAnnounced("n", 0);
        await().atMost(Duration.ofSeconds(10)).until(() -> listening() == 0);
        assertThat(busySessions("B")).isZero();
        lock.close();
        assertThat(stores.keysHeld()).isZero();
        assertThat(a.find("n").stream()).allMatch(info -> info.state() == LockState.FREE);
        assertThat(b.stop(Duration.ZERO)).as("no thread of B holds or waits").isTrue();
        granted(a, request("n", strategy)).close();
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void theTimeInTheLocalQueueCounts(LockStrategy strategy) throws Exception {
        LockHandle lock = granted(a, request("n", strategy));
        LockRequest request = request("n", strategy).waitTimeout(Duration.ofMillis(700));
        List<Future<Duration>> waits = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waits.add(threads.submit(() -> {
                long begun = System.nanoTime();
                assertThatExceptionOfType(LockTimeoutException.class).isThrownBy(() -> b.acquire(request));
                return Duration.ofNanos(System.nanoTime() - begun);
            }));
        }
        for (Future<Duration> wait : waits) {
            assertThat(wait.get(10, TimeUnit.SECONDS)).isBetween(Duration.ofMillis(700), Duration.ofMillis(1900));
        }
        lock.close();
    }

    @Test
    void aListenerThatIsTerminatedIsReplacedAndTheWaitIsBoundByThePoll() throws Exception {
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
        Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
        awaitAnnounced("n", 1);
        assertThat(database.terminate("%-listens")).isOne();
        long released = System.nanoTime();
        lock.close();
        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(POLLED);

        lock = granted(a, request("n", LockStrategy.LEASE));
        waiter = grantedAt(b, request("n", LockStrategy.LEASE));
        awaitAnnounced("n", 1);
        assertThat(database.terminate("%-listens")).isOne();
        awaitAnnounced("n", 1);
        released = System.nanoTime();
        lock.close();
        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(TOLD);
    }

    @Test
    void aListenerInABlackHoleIsReplacedAndTheWaitIsBoundByThePoll() throws Exception {
        LockEngine c = engine("C", database.url(), database.url(wire), LEASE);
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
        Future<Long> waiter = grantedAt(c, request("n", LockStrategy.LEASE));
        awaitAnnounced("n", 1);
        wire.stall();
        long released = System.nanoTime();
        lock.close();
        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(POLLED);

        lock = granted(a, request("n", LockStrategy.LEASE));
        waiter = grantedAt(c, request("n", LockStrategy.LEASE));
        long begun = System.nanoTime();
        c.close();
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).as("closing").isLessThan(Duration.ofSeconds(5));
        assertThatExceptionOfType(ExecutionException.class)
                .isThrownBy(waiter::get)
                .withCauseInstanceOf(LockNotAcquiredException.class);
        lock.close();
        wire.resume();
        await().atMost(Duration.ofSeconds(10)).until(() -> announced("n") == 0);
    }

    @Test
    void anOutageOfTheListenerIsToldOnce() throws Exception {
        try (CapturedLog log = CapturedLog.of(NotifiedWakeUps.class)) {
            LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
            Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
            awaitAnnounced("n", 1);
            database.server().execute("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS false");
            database.server()
                    .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"
                            + database.name() + "' AND application_name LIKE '%-listens'");
            await().atMost(Duration.ofSeconds(10)).until(() -> log.messages().size() > 0);
            TimeUnit.SECONDS.sleep(2);
            assertThat(log.messages()).singleElement().asString().startsWith("WARN Whoever waits for a lock polls");
            assertThat(waiter.isDone()).isFalse();

            database.server().execute("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS true");

            awaitAnnounced("n", 1);
            await().untilAsserted(() -> assertThat(log.messages())
                    .hasSize(2)
                    .last()
                    .asString()
                    .startsWith("INFO Whoever waits for a lock is woken"));
            long released = System.nanoTime();
            lock.close();
            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD);
        }
    }

    /** Instead of what the server does by itself. */
    private void announcementsDo(String plpgsql) {
        database.execute("""
                ALTER FUNCTION pg_catalog.pg_advisory_lock_shared(int, int) RENAME TO real_advisory_lock_shared;
                CREATE FUNCTION pg_catalog.pg_advisory_lock_shared(int, int) RETURNS void LANGUAGE plpgsql
                AS $$ BEGIN %s; END $$
                """.formatted(plpgsql));
    }

    /** A session that can be opened and never be used is an outage as well. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "08006", "57P01", "57P03", "25006", "26000", "42P05", "40001", "40P01", "53200", "42501", "22012",
                "XX000"
            })
    void whateverErrorTheAnnouncementMeetsWaitersPollAndThatIsToldOnce(String state) throws Exception {
        try (CapturedLog log = CapturedLog.of(NotifiedWakeUps.class)) {
            announcementsDo("RAISE EXCEPTION 'as planned' USING ERRCODE = '" + state + "'");
            LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
            Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
            await().atMost(Duration.ofSeconds(10))
                    .untilAsserted(() -> assertThat(log.messages()).isNotEmpty());
            // Whoever comes later finds the same.
            Future<Long> another = grantedAt(b, request("m", LockStrategy.LEASE));
            assertThat(another.get(10, TimeUnit.SECONDS)).isNotNull();

            long released = System.nanoTime();
            lock.close();

            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(POLLED);
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("WARN Whoever waits for a lock polls until a session that listens can be used")
                    .contains("as planned");
        }
    }

    /** Somebody is in the way for a moment: he is announced when that is over. */
    @ParameterizedTest
    @ValueSource(strings = {"55P03", "57014"})
    void whoCouldNotBeAnnouncedInTimeIsAnnouncedLater(String state) throws Exception {
        try (CapturedLog log = CapturedLog.of(NotifiedWakeUps.class)) {
            database.execute("CREATE SEQUENCE asked");
            announcementsDo("""
                    IF nextval('public.asked') <= 3 THEN RAISE EXCEPTION 'as planned' USING ERRCODE = '%s'; END IF;
                    PERFORM pg_catalog.real_advisory_lock_shared($1, $2)
                    """.formatted(state));
            LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
            Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
            awaitAnnounced("n", 1);

            long released = System.nanoTime();
            lock.close();

            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD);
            assertThat(log.messages()).isEmpty();
            assertThat(database.number("SELECT last_value FROM asked")).isEqualTo(4);
        }
    }

    @Test
    void behindAPoolerInTransactionModeItSwitchesItselfOffAndPolls() throws Exception {
        try (CapturedLog log = CapturedLog.of(NotifiedWakeUps.class);
                PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.TRANSACTION)) {
            LockEngine c = engine("C", database.url(), pooler.url(database), LEASE);
            for (int i = 0; i < 2; i++) {
                LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
                Future<Long> waiter = grantedAt(c, request("n", LockStrategy.LEASE));
                await().until(() -> log.messages().size() > 0);
                long released = System.nanoTime();
                lock.close();
                assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                        .isLessThan(POLLED);
            }
            assertThat(log.messages()).singleElement().asString().startsWith("INFO A connection pooler");
            assertThat(announced("n")).isZero();
        }
    }

    @Test
    void behindAPoolerInSessionModeItWorks() throws Exception {
        try (PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.SESSION)) {
            LockEngine c = engine("C", database.url(), pooler.url(database), LEASE);
            LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
            Future<Long> waiter = grantedAt(c, request("n", LockStrategy.LEASE));
            awaitAnnounced("n", 1);
            long released = System.nanoTime();
            lock.close();
            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD);
            c.close();
        }
    }

    /** They are ours alone to set: a waiter's time is the timeout that it was given. */
    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void timeoutsOfTheRoleEndNoWait(LockStrategy strategy) throws Exception {
        for (String setting : List.of("statement_timeout = '200ms'", "lock_timeout = '100ms'")) {
            database.execute(
                    "ALTER ROLE " + database.username() + " IN DATABASE " + database.name() + " SET " + setting);
        }
        try (CapturedLog log = CapturedLog.of(LockEngine.class.getPackageName())) {
            LockHandle lock = granted(engine("C"), request("n", strategy));
            LockRequest request = request("n", strategy).waitTimeout(Duration.ofSeconds(4));
            Future<Long> waiter = grantedAt(engine("D"), request);
            TimeUnit.SECONDS.sleep(1);
            assertThat(waiter.isDone()).isFalse();
            long released = System.nanoTime();
            lock.close();
            assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                    .isLessThan(TOLD);
            assertThat(log.messages()).noneMatch(line -> line.startsWith("ERROR") || line.startsWith("WARN"));
        }
    }

    @Test
    void closingEndsSessionAndThread() throws Exception {
        LockHandle lock = granted(a, request("n", LockStrategy.LEASE));
        Future<Long> waiter = grantedAt(b, request("n", LockStrategy.LEASE));
        awaitAnnounced("n", 1);

        b.close();

        await().until(() -> listening() == 0);
        assertThat(Thread.getAllStackTraces().keySet())
                .noneMatch(thread -> thread.getName().equals("pglock-listen"));
        assertThatExceptionOfType(ExecutionException.class)
                .isThrownBy(waiter::get)
                .withCauseInstanceOf(LockNotAcquiredException.class);
        lock.close();
    }
}
