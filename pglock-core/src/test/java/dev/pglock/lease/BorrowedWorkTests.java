package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.pglock.LockLostException;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.BorrowedConnections;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.TestDatabase;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Work under a lease on connections that are the application's own ({@code datasource.shared}). */
class BorrowedWorkTests {

    private static final String NAMESPACE = "borrowed";
    private static final Duration LEASE = Duration.ofSeconds(2);

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();
    private final List<AutoCloseable> open = new ArrayList<>();

    @BeforeEach
    void createBusiness() {
        database.execute("CREATE TABLE business (id int)");
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable closeable : open) {
            closeable.close();
        }
        stores.close();
    }

    private HikariDataSource pool(int size) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(database.url());
        config.setUsername(database.username());
        config.setPassword(database.password());
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(500);
        return new HikariDataSource(config);
    }

    private LockEngine engine(DataSource lender) {
        JdbcTimeouts timeouts = JdbcTimeouts.of(LEASE);
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, "A", LockStrategy.LEASE)
                        .withLease(LEASE, Duration.ofMillis(200)))
                .store(new LeaseStore(
                        new BorrowedConnections(lender, timeouts),
                        StoreIdentity.random(NAMESPACE, "A"),
                        LeaseStores.TABLE,
                        timeouts,
                        Duration.ZERO))
                .build();
        open.add(engine);
        return engine;
    }

    private static void insert(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("INSERT INTO business VALUES (1)");
        }
    }

    private long business() {
        return database.number("SELECT count(*) FROM business");
    }

    @Test
    void aPoolOfTwoIsEnoughForWorkThatLastsLongerThanTheLease() throws Exception {
        HikariDataSource pool = pool(2);
        LockEngine a = engine(pool);
        open.add(pool);

        a.onConnection(LockRequest.of("name"), connection -> {
            insert(connection);
            TestDatabase.text(connection, "SELECT 1 FROM (SELECT pg_sleep(3)) AS x");
            return null;
        });

        assertThat(business()).isEqualTo(1);
        assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    }

    @Test
    void aPoolOfOneLeavesNoneForTheHeartbeatAndNothingIsCommittedUnlocked() {
        HikariDataSource pool = pool(1);
        LockEngine a = engine(pool);
        open.add(pool);

        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                    insert(connection);
                    TestDatabase.text(connection, "SELECT 1 FROM (SELECT pg_sleep(3)) AS x");
                    return null;
                }));

        assertThat(business()).isZero();
        assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    }

    @Test
    void whereNoConnectionCanBeHadForTheWorkItIsNotDoneAndThatIsAFailureOfTheDatabase() throws Exception {
        HikariDataSource pool = pool(2);
        AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
        LockEngine a = engine(failingAfter(left, pool));
        open.add(pool);
        a.onConnection(LockRequest.of("name"), connection -> null);

        left.set(1);
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                    insert(connection);
                    return null;
                }))
                .withMessageContaining("no place left");

        assertThat(business()).isZero();
    }

    /** One for the claim, say, and none for the work. */
    private static DataSource failingAfter(AtomicInteger left, DataSource pool) {
        return (DataSource) Proxy.newProxyInstance(
                BorrowedWorkTests.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("getConnection") && left.getAndDecrement() <= 0) {
                        throw new SQLException("no place left");
                    }
                    return method.invoke(pool, arguments);
                });
    }

    /** Not every pool puts back what a borrower has changed. */
    @Test
    void aConnectionGoesBackInTheModeItCameIn() throws Exception {
        try (Connection only = database.direct();
                Connection others = database.direct()) {
            List<Boolean> busy = new ArrayList<>();
            LockEngine a = engine(lending(only, others, busy));
            a.onConnection(LockRequest.of("name"), connection -> {
                assertThat(connection.getAutoCommit()).isFalse();
                insert(connection);
                return null;
            });
            assertThat(business()).isEqualTo(1);
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(() -> a.onConnection(LockRequest.of("name"), connection -> {
                        insert(connection);
                        throw new IllegalArgumentException("the work's own");
                    }));
            assertThat(only.getAutoCommit()).isTrue();
            assertThat(others.getAutoCommit()).isTrue();
            assertThat(business()).isEqualTo(1);
        }
    }

    /** One that joins the caller's transaction lends no connection for work: its commit would be the caller's. */
    @Test
    void aConnectionInsideATransactionOfTheCallerIsRefusedAndLeftAlone() throws Exception {
        BorrowedConnections joining;
        try (Connection caller = database.direct()) {
            joining = new BorrowedConnections(lending(caller, caller, new ArrayList<>()), JdbcTimeouts.of(LEASE));
            caller.setAutoCommit(false);
            insert(caller);

            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> joining.open(LEASE))
                    .withMessageContaining("open transaction");

            caller.rollback();
        }
        assertThat(business()).isZero();
    }

    /** Two connections that are lent in turn and outlive their closing, as a pool without manners would. */
    private static DataSource lending(Connection one, Connection two, List<Boolean> inUse) {
        return (DataSource) Proxy.newProxyInstance(
                BorrowedWorkTests.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("getConnection")) {
                        throw new UnsupportedOperationException(method.getName());
                    }
                    synchronized (inUse) {
                        boolean first = !inUse.contains(true);
                        inUse.add(first);
                        return handle(first ? one : two, () -> {
                            synchronized (inUse) {
                                inUse.remove(first);
                            }
                        });
                    }
                });
    }

    private static Connection handle(Connection connection, Runnable closed) {
        return (Connection) Proxy.newProxyInstance(
                BorrowedWorkTests.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("close")) {
                        closed.run();
                        return null;
                    }
                    try {
                        return method.invoke(connection, arguments);
                    } catch (java.lang.reflect.InvocationTargetException e) {
                        throw e.getTargetException();
                    }
                });
    }
}
