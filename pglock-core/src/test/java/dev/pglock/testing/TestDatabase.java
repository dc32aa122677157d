package dev.pglock.testing;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** A database of one test. What tests observe, they observe through direct connections of their own. */
public final class TestDatabase implements AutoCloseable {

    private final PostgresServer server;
    private final String name;
    private final String host;
    private final int port;
    private final String username;
    private final String password;

    TestDatabase(PostgresServer server, String name, String host, int port, String username, String password) {
        this.server = server;
        this.name = name;
        this.host = host;
        this.port = port;
        this.username = username;
        this.password = password;
    }

    public PostgresServer server() {
        return server;
    }

    public String name() {
        return name;
    }

    public String url() {
        return server.url(name);
    }

    /** By way of a proxy in front of the server. */
    public String url(TcpProxy proxy) {
        return "jdbc:postgresql://localhost:" + proxy.port() + "/" + name;
    }

    public String username() {
        return username;
    }

    public String password() {
        return password;
    }

    /** A connection that comes from no pool. The caller closes it. */
    public Connection direct() {
        return direct(username, password);
    }

    public Connection direct(String user, String itsPassword) {
        try {
            return DriverManager.getConnection(url(), user, itsPassword);
        } catch (SQLException e) {
            throw new IllegalStateException("No direct connection to " + url() + ": " + e.getMessage(), e);
        }
    }

    /** Opens a new connection at each call. */
    public DataSource dataSource() {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setServerNames(new String[] {host});
        dataSource.setPortNumbers(new int[] {port});
        dataSource.setDatabaseName(name);
        dataSource.setUser(username);
        dataSource.setPassword(password);
        return dataSource;
    }

    /** Runs a statement on a direct connection. */
    public void execute(String sql) {
        try (Connection connection = direct();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(sql + ": " + e.getMessage(), e);
        }
    }

    /** Asks for one number on a direct connection. */
    public long number(String sql, Object... parameters) {
        return Long.parseLong(Objects.requireNonNull(text(sql, parameters), sql));
    }

    public boolean isTrue(String sql, Object... parameters) {
        return "t".equals(text(sql, parameters));
    }

    /** Asks for one value on a direct connection. */
    public @Nullable String text(String sql, Object... parameters) {
        try (Connection connection = direct()) {
            return text(connection, sql, parameters);
        } catch (SQLException e) {
            throw new IllegalStateException(sql + ": " + e.getMessage(), e);
        }
    }

    public static @Nullable String text(Connection connection, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setObject(i + 1, parameters[i]);
            }
            try (ResultSet row = statement.executeQuery()) {
                if (!row.next()) {
                    throw new IllegalStateException("No row: " + sql);
                }
                return row.getString(1);
            }
        }
    }

    /** Ends all sessions with such an application name, as an administrator would. */
    public long terminate(String applicationNamePattern) {
        return number(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        + " WHERE datname = current_database() AND application_name LIKE ? AND pid <> pg_backend_pid()",
                applicationNamePattern);
    }

    /** Drops the database, ending whatever is connected to it. */
    @Override
    public void close() {
        server.execute("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
    }
}
