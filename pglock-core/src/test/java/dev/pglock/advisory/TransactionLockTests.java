package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Locks that last as long as the caller's transaction, against locks of both strategies. */
class TransactionLockTests {

    private static final String NAMESPACE = "transactions";

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final List<LockEngine> engines = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        stores.close();
    }

    private LockEngine engine(LockStrategy strategy, String label) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        LockStore store = strategy == LockStrategy.LEASE ? stores.lease(identity) : stores.store(identity);
        LockEngine engine = LockEngine.builder(
                        EngineSettings.defaults(NAMESPACE, label, strategy).withLease(ReplicaStores.LEASE, null))
                .store(store)
                .build();
        engines.add(engine);
        return engine;
    }

    private Connection transaction(int isolation) throws SQLException {
        Connection connection = database.direct();
        connection.setTransactionIsolation(isolation);
        connection.setAutoCommit(false);
        // The snapshot of REPEATABLE READ and SERIALIZABLE is older than all that follows.
        TestDatabase.text(connection, "SELECT 1");
        return connection;
    }

    @ParameterizedTest
    @CsvSource({
        "LEASE, 1",
        "LEASE, 2",
        "LEASE, 4",
        "LEASE, 8",
        "ADVISORY, 1",
        "ADVISORY, 2",
        "ADVISORY, 4",
        "ADVISORY, 8"
    })
    void itExcludesAndIsExcludedAtEveryIsolationLevel(LockStrategy strategy, int isolation) throws Exception {
        LockEngine a = engine(strategy, "A");
        LockEngine b = engine(strategy == LockStrategy.LEASE ? LockStrategy.ADVISORY : LockStrategy.LEASE, "B");
        try (Connection transaction = transaction(isolation);
                Connection other = transaction(isolation)) {
            for (LockEngine holder : List.of(a, b)) {
                try (LockHandle held = holder.tryAcquire(LockRequest.of("name")).orElseThrow()) {
                    assertThat(a.tryAcquireInTransaction(transaction, "name")).isFalse();
                    assertThat(held.isHeld()).isTrue();
                }
            }
            assertThat(stores.keysHeld()).as("left by a denial").isZero();

            assertThat(a.tryAcquireInTransaction(transaction, "name")).isTrue();

            assertThat(a.tryAcquireInTransaction(transaction, "name"))
                    .as("again")
                    .isTrue();
            assertThat(b.tryAcquireInTransaction(other, "name")).isFalse();
            for (LockEngine claimant : List.of(a, b)) {
                assertThat(claimant.tryAcquire(LockRequest.of("name"))).isEmpty();
                claimant.tryAcquire(LockRequest.of("other")).orElseThrow().close();
            }
            if (isolation == Connection.TRANSACTION_READ_COMMITTED) {
                transaction.commit();
            } else {
                transaction.rollback();
            }
            for (LockEngine claimant : List.of(a, b)) {
                claimant.tryAcquire(LockRequest.of("name")).orElseThrow().close();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void outsideATransactionItIsRefused(LockStrategy strategy) throws Exception {
        LockEngine a = engine(strategy, "A");
        try (Connection connection = database.direct()) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> a.tryAcquireInTransaction(connection, "name"))
                    .withMessageContaining("autocommit");
            assertThat(stores.keysHeld()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void aTransactionInAnotherDatabaseIsRefusedAndLeftAsItWas(LockStrategy strategy) throws Exception {
        LockEngine a = engine(strategy, "A");
        try (TestDatabase elsewhere = database.server().newDatabase();
                Connection transaction = elsewhere.direct()) {
            transaction.setAutoCommit(false);
            TestDatabase.text(transaction, "SELECT set_config('test.written', 'before', true)");

            assertThatIllegalArgumentException()
                    .isThrownBy(() -> a.tryAcquireInTransaction(transaction, "name"))
                    .withMessageContaining(elsewhere.name())
                    .withMessageContaining(database.name())
                    .withMessageContaining("pglock.datasource");

            assertThat(TestDatabase.text(transaction, "SELECT current_setting('test.written')"))
                    .isEqualTo("before");
            assertThat(elsewhere.number(
                            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = ?",
                            Integer.parseInt(TestDatabase.text(transaction, "SELECT pg_backend_pid()"))))
                    .isZero();
        }
    }

    /** Whoever has a schema for each tenant may have a table of that name in each. */
    @Test
    void itLooksIntoTheTableOfTheLocksWhereverTheTransactionLooksForItsOwn() throws Exception {
        stores.unqualified();
        database.execute(
                "CREATE SCHEMA tenant; CREATE TABLE tenant.pglock_lease (LIKE public.pglock_lease INCLUDING ALL)");
        database.execute("ALTER TABLE public.pglock_lease RENAME TO pglock_lease_to_be");
        LockEngine advisory = engine(LockStrategy.ADVISORY, "A");
        LockEngine lease = engine(LockStrategy.LEASE, "B");
        try (Connection transaction = transaction(Connection.TRANSACTION_READ_COMMITTED)) {
            TestDatabase.text(transaction, "SELECT set_config('search_path', 'tenant', false)");
            assertThat(advisory.tryAcquireInTransaction(transaction, "name"))
                    .as("without the table")
                    .isTrue();
            transaction.commit();
            database.execute("ALTER TABLE pglock_lease_to_be RENAME TO pglock_lease");
            LockHandle held = lease.tryAcquire(LockRequest.of("name")).orElseThrow();

            for (LockEngine engine : List.of(advisory, lease)) {
                assertThat(engine.tryAcquireInTransaction(transaction, "name")).isFalse();
            }

            assertThat(held.release()).isTrue();
            for (LockEngine engine : List.of(advisory, lease)) {
                assertThat(engine.tryAcquireInTransaction(transaction, "name")).isTrue();
            }
        }
    }

    @Test
    void aTransactionInADatabaseOfTheSameNameOnAnotherServerIsRefused() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY, "A");
        try (Connection here = transaction(Connection.TRANSACTION_READ_COMMITTED)) {
            assertThat(a.tryAcquireInTransaction(here, "name")).isTrue();
        }
        try (PostgresServer other = PostgresServer.dedicated()) {
            other.execute("CREATE DATABASE " + database.name());
            String url = "jdbc:postgresql://localhost:" + other.port() + "/" + database.name();
            try (Connection elsewhere = DriverManager.getConnection(url, "postgres", "postgres")) {
                elsewhere.setAutoCommit(false);
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> a.tryAcquireInTransaction(elsewhere, "name"))
                        .withMessageContaining("of another server");
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void aLaterSavepointDoesNotEndItAndAPauseKeepsItOut(LockStrategy strategy) throws Exception {
        LockEngine a = engine(strategy, "A");
        try (Connection transaction = transaction(Connection.TRANSACTION_READ_COMMITTED)) {
            assertThat(a.tryAcquireInTransaction(transaction, "name")).isTrue();
            Savepoint later = transaction.setSavepoint();
            transaction.rollback(later);
            assertThat(stores.keysHeld()).isEqualTo(1);
            transaction.commit();
            assertThat(stores.keysHeld()).isZero();
        }
        LockHandle lease = engine(LockStrategy.LEASE, "B")
                .tryAcquire(LockRequest.of("paused"))
                .orElseThrow();
        lease.close();
        database.execute("UPDATE pglock_lease SET paused = 'for the test'");
        try (Connection transaction = transaction(Connection.TRANSACTION_SERIALIZABLE)) {
            assertThat(a.tryAcquireInTransaction(transaction, "paused")).isFalse();
        }
    }

    @ParameterizedTest
    @CsvSource({"2", "4", "8"})
    void transactionsLeasesAndAdvisoryLocksNeverOverlap(int isolation) throws Exception {
        LockEngine lease = engine(LockStrategy.LEASE, "A");
        LockEngine advisory = engine(LockStrategy.ADVISORY, "B");
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger grants = new AtomicInteger();
        Concurrently.run(6, i -> () -> {
            try (Connection connection = transaction(isolation)) {
                for (int n = 0; n < 500; n++) {
                    if (i < 2) {
                        if (lease.tryAcquireInTransaction(connection, "name")) {
                            assertThat(inside.incrementAndGet()).isEqualTo(1);
                            grants.incrementAndGet();
                            inside.decrementAndGet();
                        }
                        connection.rollback();
                    } else {
                        LockEngine engine = i % 2 == 0 ? lease : advisory;
                        engine.tryAcquire(LockRequest.of("name")).ifPresent(lock -> {
                            assertThat(inside.incrementAndGet()).isEqualTo(1);
                            grants.incrementAndGet();
                            inside.decrementAndGet();
                            lock.close();
                        });
                    }
                }
            }
            return null;
        });
        assertThat(grants.get()).isGreaterThan(100);
        assertThat(stores.keysHeld()).isZero();
    }
}
