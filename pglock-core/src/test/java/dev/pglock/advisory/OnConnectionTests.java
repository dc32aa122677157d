package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockException;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRefusedException;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.Claim;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PgBouncer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Work on the connection that holds the lock. All pools have one connection. */
class OnConnectionTests {

    private static final String NAMESPACE = "work";
    private static final Duration LEASE = ReplicaStores.LEASE;
    private static final String SESSIONS =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pglock:" + NAMESPACE + ":few'";

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final List<LockEngine> engines = new ArrayList<>();

    @BeforeEach
    void createBusiness() {
        database.execute("CREATE TABLE business (id int)");
    }

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        stores.close();
        wire.close();
    }

    private LockEngine engine(LockStrategy strategy, String label) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        LockStore store = strategy == LockStrategy.LEASE
                ? stores.lease(identity, database.url(wire), LEASE, 1)
                : stores.store(identity, wire);
        return engine(identity, store);
    }

    private LockEngine engine(StoreIdentity identity, LockStore store) {
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, identity.label(), store.strategy())
                        .withLease(LEASE, Duration.ofMillis(200)))
                .store(store)
                .build();
        engines.add(engine);
        return engine;
    }

    private static void insert(Connection connection) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute("INSERT INTO business VALUES (1)");
        }
    }

    private long business() {
        return database.number("SELECT count(*) FROM business");
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void workLastsLongerThanTheLeaseAndIsCommitted(LockStrategy strategy) throws Exception {
        LockEngine a = engine(strategy, "A");
        LockEngine b = engine(strategy, "B");

        String result = a.onConnection(LockRequest.of("name"), connection -> {
            insert(connection);
            connection.commit();
            insert(connection);
            // A statement that takes longer than the lease, while heartbeats go on
            TestDatabase.text(connection, "SELECT 1 FROM (SELECT pg_sleep(3)) AS x");
            assertThat(LockContext.current().isHeld()).isTrue();
            assertThat(b.tryAcquire(LockRequest.of("name"))).isEmpty();
            return "done";
        });

        assertThat(result).isEqualTo("done");
        assertThat(business()).isEqualTo(2);
        b.tryAcquire(LockRequest.of("name")).orElseThrow().close();
        assertThat(stores.keysHeld()).isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void workIsUnderNoTimeoutOfOursHoweverItIsConnected(LockStrategy strategy) throws Exception {
        database.execute("ALTER DATABASE " + database.name() + " SET statement_timeout = '1min'");
        try (PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.SESSION)) {
            for (String url : List.of(database.url() + "?prepareThreshold=0", pooler.url(database))) {
                StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
                LockEngine a = engine(
                        identity,
                        strategy == LockStrategy.LEASE
                                ? stores.lease(identity, url, LEASE, 1)
                                : stores.store(identity, url, LEASE, 1));

                String timeouts = a.onConnection(
                        LockRequest.of("name"),
                        connection -> TestDatabase.text(
                                connection,
                                "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN"
                                        + " ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')"));

                assertThat(timeouts).as(url).isEqualTo("0 0 60000");
            }
        }
    }

    /** As migrations do. The row is written by the role that has logged in. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "SET ROLE %s",
                "SET SESSION AUTHORIZATION %s",
                "SET default_transaction_read_only = on",
                "SET search_path = pg_catalog"
            })
    void whatTheWorkHasSetIsNotInTheWayOfItsRelease(String setting) throws Exception {
        String owner = database.server().newRole();
        stores.unqualified();
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        LockRequest request = LockRequest.of("backfill").version("1");

        a.onConnection(request, connection -> {
            connection.createStatement().execute(setting.formatted(owner));
            return null;
        });

        assertThat(database.text("SELECT completed FROM pglock_lease")).isEqualTo("{1}");
        assertThat(stores.keysHeld()).isZero();
    }

    /** As with a schema for each tenant: the locks' own is the one that the session began with. */
    @Test
    void workInAnotherSchemaLeavesItsReleaseInThatOfTheLocks() throws Exception {
        for (String schema : List.of("locks", "tenant")) {
            database.execute("CREATE SCHEMA " + schema + "; CREATE TABLE " + schema
                    + ".pglock_lease (LIKE public.pglock_lease INCLUDING ALL)");
        }
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
        LockEngine a = engine(
                identity, stores.unqualified().store(identity, database.url() + "?currentSchema=locks", LEASE, 1));

        a.onConnection(LockRequest.of("backfill").version("1"), connection -> {
            connection.setSchema("tenant");
            return null;
        });

        assertThat(database.text("SELECT completed FROM locks.pglock_lease")).isEqualTo("{1}");
        assertThat(database.number("SELECT count(*) FROM tenant.pglock_lease")).isZero();
        assertThat(stores.keysHeld()).isZero();
    }

    @Test
    void workWhoseReleaseFailsLeavesNothingBehind() throws Exception {
        database.execute("""
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not here'; END $$;
                CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON pglock_lease FOR EACH ROW EXECUTE FUNCTION refuse();
                """);
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        LockEngine b = engine(LockStrategy.ADVISORY, "B");

        a.onConnection(LockRequest.of("backfill").version("1"), connection -> null);

        assertThat(database.number("SELECT count(*) FROM pglock_lease"))
                .as("what was to be remembered")
                .isZero();
        await().atMost(LEASE)
                .untilAsserted(() ->
                        b.tryAcquire(LockRequest.of("backfill")).orElseThrow().close());
        await().untilAsserted(() -> assertThat(stores.keysHeld()).isZero());
    }

    @Test
    void withoutTheTableAMinimumHoldOfWorkLastsNoLongerThanItself() throws Exception {
        database.execute("DROP TABLE pglock_lease");
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        LockEngine b = engine(LockStrategy.ADVISORY, "B");
        Duration minHold = Duration.ofSeconds(1);

        long began = System.nanoTime();
        a.onConnection(LockRequest.of("name").minHold(minHold), connection -> null);
        assertThat(b.tryAcquire(LockRequest.of("name"))).isEmpty();
        b.acquire(LockRequest.of("name")).close();
        Duration kept = Duration.ofNanos(System.nanoTime() - began);

        assertThat(kept).isBetween(minHold, minHold.plus(LEASE).minusMillis(500));
        assertThat(stores.keysHeld()).isZero();
    }

    @Test
    void whatWorkSaysOfItselfIsReadByOthersAndWhatOperatorsAskForIsHeard() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        LockEngine b = engine(LockStrategy.ADVISORY, "B");

        a.onConnection(LockRequest.of("name"), connection -> {
            LockHandle lock = LockContext.current();

            lock.data("50 %");
            assertThat(b.find("name").orElseThrow().data()).isEqualTo("50 %");
            assertThat(b.resign("name", "it shall run elsewhere")).isTrue();
            assertThatExceptionOfType(InterruptedException.class)
                    .isThrownBy(() -> new CountDownLatch(1).await(LEASE.toMillis(), TimeUnit.MILLISECONDS));

            assertThat(lock.isHeld()).isTrue();
            return null;
        });

        assertThat(stores.keysHeld()).isZero();
    }

    /** Work is seen from outside, by a connection that may not be had; the lock session speaks for itself. */
    @Test
    void whatKeepsWorkFromBeingSeenIsNoLossOfOtherLocks() throws Exception {
        Duration lease = Duration.ofSeconds(4);
        String role = database.server().newRole();
        database.execute("GRANT ALL ON pglock_lease TO " + role);
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
        LockEngine a = LockEngine.builder(EngineSettings.defaults(NAMESPACE, "A", LockStrategy.ADVISORY)
                        .withLease(lease, Duration.ofMillis(500)))
                .store(stores.as(role).store(identity, database.url(), lease, 10))
                .build();
        engines.add(a);
        LockHandle ordinary = a.tryAcquire(LockRequest.of("ordinary")).orElseThrow();

        try {
            a.onConnection(LockRequest.of("work").onLost(OnLost.CONTINUE), connection -> {
                database.execute("ALTER ROLE " + role + " CONNECTION LIMIT 0");
                assertThat(
                                database.number(
                                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity a"
                                                + " WHERE datname = current_database() AND application_name = 'pglock:"
                                                + NAMESPACE + ":A'"
                                                + " AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory')"))
                        .isEqualTo(1);
                await().during(lease.multipliedBy(2))
                        .atMost(lease.multipliedBy(3))
                        .until(ordinary::isHeld);
                return null;
            });
        } catch (SQLException | LockException e) {
            // Nobody could say that the work had its lock.
            assertThat(LockContext.all()).isEmpty();
        }

        assertThat(ordinary.isHeld()).isTrue();
        assertThat(ordinary.release()).isTrue();
    }

    /** Looking, opening a session and claiming are many round trips, each of which may be slow without failing. */
    @ParameterizedTest
    @ValueSource(ints = {50, 150, 350, 600})
    void onASlowNetworkAnAttemptEndsWithinTheLease(int delay) throws Exception {
        Duration lease = Duration.ofSeconds(6);
        LockStore store = stores.store(StoreIdentity.random(NAMESPACE, "slow"), database.url(wire), lease, 10);
        assertThat(store.find("name"))
                .as("looks once, so that there is a connection")
                .isEmpty();
        wire.delay(Duration.ofMillis(delay));
        long asked = System.nanoTime();

        String outcome;
        try {
            outcome = String.valueOf(store.claimForWork(
                    new Claim("name", KeyDerivation.SHA256.key(NAMESPACE, "name"), lease, null, null)));
        } catch (LockStorageException e) {
            outcome = e.getMessage();
        }

        assertThat(Duration.ofNanos(System.nanoTime() - asked)).as(outcome).isLessThan(lease);
        wire.resume();
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void itTakesOneConnectionForLockAndWork(LockStrategy strategy) throws Exception {
        LockEngine a = engine(strategy, "A");
        a.onConnection(LockRequest.of("warm"), connection -> null);
        long before = wire.connections();

        a.onConnection(LockRequest.of("name"), connection -> {
            insert(connection);
            return null;
        });

        assertThat(wire.connections() - before).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void workThatThrowsIsRolledBackAndTheLockIsFree(LockStrategy strategy) {
        LockEngine a = engine(strategy, "A");

        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                    insert(connection);
                    throw new IllegalArgumentException("the work's own");
                }));

        assertThat(business()).isZero();
        a.tryAcquire(LockRequest.of("name")).orElseThrow().close();
        assertThat(stores.keysHeld()).isZero();
    }

    @Test
    void itCountsAmongTheMostLocksOfAReplica() throws Exception {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "few");
        LockEngine few = LockEngine.builder(EngineSettings.defaults(NAMESPACE, "few", LockStrategy.ADVISORY)
                        .withLease(LEASE, Duration.ofMillis(200)))
                .store(stores.store(identity, database.url(), LEASE, 2))
                .build();
        engines.add(few);
        LockHandle ordinary = few.tryAcquire(LockRequest.of("ordinary")).orElseThrow();

        few.onConnection(LockRequest.of("work"), connection -> {
            long sessions = database.number(SESSIONS);
            assertThatExceptionOfType(LockRefusedException.class)
                    .isThrownBy(() -> few.tryAcquire(LockRequest.of("third")))
                    .withMessageContaining("2 advisory locks")
                    .withMessageContaining("pglock.advisory.max-locks");
            assertThatExceptionOfType(LockRefusedException.class)
                    .isThrownBy(() -> few.onConnection(LockRequest.of("third"), other -> null));
            assertThat(database.number(SESSIONS))
                    .as("opened for what was refused")
                    .isEqualTo(sessions);
            assertThat(few.find("work").orElseThrow().fence())
                    .isEqualTo(LockContext.current().fence());
            ordinary.close();
            few.tryAcquire(LockRequest.of("third")).orElseThrow().close();
            return null;
        });
        try (LockHandle one = few.tryAcquire(LockRequest.of("1")).orElseThrow();
                LockHandle two = few.tryAcquire(LockRequest.of("2")).orElseThrow()) {
            assertThat(two.fence()).isGreaterThan(one.fence());
        }
    }

    @Test
    void theConnectionHoldsTheAdvisoryLock() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY, "A");

        a.onConnection(LockRequest.of("name"), connection -> {
            assertThat(TestDatabase.text(
                            connection,
                            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"))
                    .isEqualTo("1");
            return null;
        });
    }

    @Test
    void sessionAndWorkDieTogether() {
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        LockEngine b = engine(LockStrategy.ADVISORY, "B");

        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                    insert(connection);
                    database.terminate("pglock:" + NAMESPACE + ":A");
                    await().until(() -> b.tryAcquire(LockRequest.of("name")).isPresent());
                    insert(connection);
                    return null;
                }));

        assertThat(business()).isZero();
    }

    @Test
    void underALeaseACommitAfterTheTenureIsRefused() throws Exception {
        LockEngine a = engine(LockStrategy.LEASE, "A");

        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                    insert(connection);
                    connection.commit();
                    insert(connection);
                    database.execute("UPDATE pglock_lease SET fence = fence + 1");
                    connection.commit();
                    return null;
                }));

        assertThat(business()).isEqualTo(1);
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("other"), connection -> {
                    connection.setAutoCommit(true);
                    return null;
                }));
    }

    @Test
    void underALeaseACommitIsFencedAtEveryIsolationLevel() {
        LockEngine a = engine(LockStrategy.LEASE, "A");
        for (int isolation : List.of(2, 4, 8)) {
            assertThatExceptionOfType(LockLostException.class)
                    .isThrownBy(() -> a.onConnection(LockRequest.of("name " + isolation), connection -> {
                        connection.setTransactionIsolation(isolation);
                        insert(connection);
                        database.execute("UPDATE pglock_lease SET fence = fence + 1");
                        return null;
                    }));
        }
        assertThat(business()).isZero();
    }
}
