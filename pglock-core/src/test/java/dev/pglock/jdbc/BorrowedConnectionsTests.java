package dev.pglock.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BorrowedConnectionsTests {

    private static final Duration BUDGET = Duration.ofSeconds(5);
    private static final JdbcTimeouts TIMEOUTS = JdbcTimeouts.of(Duration.ofSeconds(2));

    private final TestDatabase database = PostgresServer.shared().newDatabase();

    @BeforeEach
    void createTable() {
        database.execute("CREATE TABLE t (i int)");
    }

    @AfterEach
    void close() {
        database.close();
    }

    private HikariConfig config() {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(database.url());
        config.setUsername(database.username());
        config.setPassword(database.password());
        config.setMaximumPoolSize(1);
        return config;
    }

    private static String ask(ConnectionSource source, String sql) throws SQLException {
        return source.run(Lane.WORK, BUDGET, (connection, unanswered) -> TestDatabase.text(connection, sql));
    }

    private static boolean execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.execute(sql);
        }
    }

    /** All that a next borrower could find changed. */
    private static String stateOf(DataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            String java = connection.getAutoCommit() + " " + connection.isReadOnly() + " "
                    + connection.getNetworkTimeout() + " " + connection.getTransactionIsolation();
            String server = TestDatabase.text(
                    connection,
                    "SELECT pg_backend_pid() || ' ' || string_agg(name || '=' || setting, ', ' ORDER BY name)"
                            + " FROM pg_settings WHERE name ~ 'transaction|timeout|commit|application_name|search_path|TimeZone'");
            return java + " " + server;
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true,  false, TRANSACTION_READ_COMMITTED",
        "false, false, TRANSACTION_READ_COMMITTED",
        "false, true,  TRANSACTION_SERIALIZABLE",
        "true,  true,  TRANSACTION_REPEATABLE_READ"
    })
    void aConnectionComesBackExactlyAsItWas(boolean autoCommit, boolean readOnly, String isolation) throws Exception {
        HikariConfig config = config();
        config.setAutoCommit(autoCommit);
        config.setReadOnly(readOnly);
        config.setTransactionIsolation(isolation);
        config.setIsolateInternalQueries(true);
        if (autoCommit || !readOnly) {
            config.setConnectionInitSql(
                    "SET statement_timeout = '7s'; SET lock_timeout = '77ms'; SET synchronous_commit = off");
        }
        try (HikariDataSource pool = new HikariDataSource(config);
                BorrowedConnections borrowed = new BorrowedConnections(pool, TIMEOUTS)) {
            String before = stateOf(pool);

            assertThat(ask(borrowed, "SHOW transaction_isolation")).isEqualTo("read committed");
            assertThat(ask(borrowed, "SHOW transaction_read_only")).isEqualTo("off");
            assertThat(ask(borrowed, "SHOW statement_timeout")).isEqualTo("666ms");
            assertThat(ask(borrowed, "SHOW lock_timeout")).isEqualTo("333ms");
            assertThat(ask(borrowed, "SHOW synchronous_commit")).isEqualTo("on");
            ask(borrowed, "INSERT INTO t VALUES (1) RETURNING i");
            assertThat(stateOf(pool)).isEqualTo(before);

            for (String wrong : List.of("SELECT 1/0", "SELECT pg_sleep(3)", "INSERT INTO t VALUES (1) RETURNING i/0")) {
                assertThatExceptionOfType(SQLException.class).isThrownBy(() -> ask(borrowed, wrong));
                assertThat(stateOf(pool)).isEqualTo(before);
            }
        }
        assertThat(database.number("SELECT count(*) FROM t")).isEqualTo(1);
    }

    @Test
    void aConnectionThatBrokeIsNotGivenToTheNextBorrower() throws Exception {
        try (HikariDataSource pool = new HikariDataSource(config());
                BorrowedConnections borrowed = new BorrowedConnections(pool, TIMEOUTS)) {
            String first = ask(borrowed, "SELECT pg_backend_pid()");
            database.terminate("%");

            String second = ask(borrowed, "SELECT pg_backend_pid()");

            assertThat(second).isNotEqualTo(first);
            try (Connection connection = pool.getConnection()) {
                assertThat(TestDatabase.text(connection, "SELECT pg_backend_pid()"))
                        .isEqualTo(second);
            }
        }
    }

    @Test
    void aPieceOfWorkIsThreeRoundTripsAndOneTransaction() throws Exception {
        try (TcpProxy wire = TcpProxy.to(database.server())) {
            HikariConfig config = config();
            config.setJdbcUrl(database.url(wire));
            try (HikariDataSource pool = new HikariDataSource(config);
                    BorrowedConnections borrowed = new BorrowedConnections(pool, TIMEOUTS)) {
                ask(borrowed, "SELECT 1");
                long before = wire.roundTrips();

                ask(borrowed, "SELECT 1");

                assertThat(wire.roundTrips() - before).isEqualTo(3);
            }
        }
    }

    @Test
    void aCommitWhoseAnswerWasLostIsDoneAgainAndTold() throws Exception {
        try (TcpProxy wire = TcpProxy.to(database.server())) {
            HikariConfig config = config();
            config.setJdbcUrl(database.url(wire));
            try (HikariDataSource pool = new HikariDataSource(config);
                    BorrowedConnections borrowed = new BorrowedConnections(pool, TIMEOUTS)) {
                ask(borrowed, "SELECT 1");

                boolean told = borrowed.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
                    if (!unanswered) {
                        execute(connection, "INSERT INTO t VALUES (1)");
                        wire.loseNextAnswer();
                    }
                    return unanswered;
                });

                assertThat(told).isTrue();
                assertThat(database.number("SELECT count(*) FROM t")).isEqualTo(1);
            }
        }
    }

    @Test
    void aConnectionInsideATransactionIsRefusedAndLeftAlone() throws Exception {
        try (Connection callers = database.direct()) {
            callers.setAutoCommit(false);
            execute(callers, "INSERT INTO t VALUES (1)");
            DataSource bound = dataSource(unclosable(callers));
            BorrowedConnections borrowed = new BorrowedConnections(bound, TIMEOUTS);

            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> ask(borrowed, "SELECT 1"))
                    .withMessageContaining("inside an open transaction");

            assertThat(callers.getAutoCommit()).isFalse();
            assertThat(database.number("SELECT count(*) FROM t")).isZero();
            callers.commit();
            assertThat(database.number("SELECT count(*) FROM t")).isEqualTo(1);
        }
    }

    @Test
    void anotherDatabaseIsRefusedByName() {
        DatabaseMetaData h2 = (DatabaseMetaData) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {DatabaseMetaData.class},
                (proxy, method, arguments) -> "H2");
        Connection connection = (Connection) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> method.getName().equals("getMetaData") ? h2 : null);
        BorrowedConnections borrowed = new BorrowedConnections(dataSource(connection), TIMEOUTS);

        assertThatExceptionOfType(UnsupportedDatabaseException.class)
                .isThrownBy(() -> ask(borrowed, "SELECT 1"))
                .withMessageContaining("needs PostgreSQL, but this is H2")
                .withMessageContaining("pglock.strategy=local")
                .withMessageContaining("pglock.enabled=false");
    }

    private static Connection unclosable(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                BorrowedConnectionsTests.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) ->
                        method.getName().equals("close") ? null : method.invoke(connection, arguments));
    }

    private static DataSource dataSource(Connection connection) {
        return (DataSource) Proxy.newProxyInstance(
                BorrowedConnectionsTests.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> connection);
    }

    /** A pool that ends because of an interrupt was asked, nothing else: it is asked again, and the interrupt is kept. */
    @Test
    void aPoolThatAnInterruptKeepsFromLendingIsAskedOnceMore() throws Exception {
        AtomicInteger times = new AtomicInteger();
        try (HikariDataSource pool = new HikariDataSource(config()) {
                    @Override
                    public Connection getConnection() throws SQLException {
                        if (times.incrementAndGet() == 1) {
                            Thread.currentThread().interrupt();
                            throw new SQLException("interrupted while waiting", new InterruptedException());
                        }
                        return super.getConnection();
                    }
                };
                BorrowedConnections borrowed = new BorrowedConnections(pool, TIMEOUTS)) {
            assertThat(ask(borrowed, "SELECT 1")).isEqualTo("1");
            assertThat(Thread.interrupted()).isTrue();
            assertThat(times).hasValue(2);
        }
    }
}
