package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGNotification;
import org.postgresql.jdbc.PgConnection;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session that listens for releases, and announces who waits by shared advisory locks, which releasers see and which go
 * with it. It is idle outside every transaction but for the moment of an announcement. For one thread; {@link #abort} for
 * any.
 *
 * @see <a href="https://www.postgresql.org/docs/current/sql-notify.html">NOTIFY</a>
 */
final class ListenSession implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(ListenSession.class);

    private static final String LISTEN = "LISTEN pglock";

    /**
     * The one wait inside the server: behind a releaser's single statement, for {@code lock_timeout} at most. Without it
     * the releaser could look before this, and commit after the question that follows.
     */
    private static final String ANNOUNCE = "SELECT pg_advisory_lock_shared(1885826155, ?::int)";

    private static final String WITHDRAW = "SELECT pg_advisory_unlock_shared(1885826155, ?::int)";

    private final Connection connection;

    private ListenSession(Connection connection) {
        this.connection = connection;
    }

    /**
     * Opens a session. Blocks for the connection and some round trips.
     *
     * @return null if a transaction pooler stands in between: nobody listens through it
     */
    static @Nullable ListenSession open(SessionFactory sessions) throws SQLException {
        JdbcTimeouts timeouts = sessions.settings().timeouts();
        Connection connection = sessions.open(timeouts.work());
        boolean ready = false;
        try {
            boolean pooled = SessionFactory.isBehindPooler(connection);
            if (pooled
                    && (TransactionPooler.standsBetween(sessions, connection)
                            || !sessions.applySettings(connection, TransactionPooler.pid(connection)))) {
                return null;
            }
            connection.setNetworkTimeout(
                    SessionFactory.DIRECT, (int) timeouts.answer().toMillis());
            execute(connection, LISTEN);
            ready = true;
            return new ListenSession(connection);
        } finally {
            if (!ready) {
                connection.close();
            }
        }
    }

    /** Announces that somebody waits. False: a releaser was in the way for too long; try again. */
    boolean announce(int waitKey) throws SQLException {
        try {
            execute(ANNOUNCE, waitKey);
            return true;
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
                log.debug("Nobody could be announced on wait key {} at this moment", waitKey, e);
                return false;
            }
            throw e;
        }
    }

    /** Nobody waits any more. */
    void withdraw(int waitKey) throws SQLException {
        execute(WITHDRAW, waitKey);
    }

    /** Asks for nothing, to see whether somebody answers: what only listens never learns that the other end is gone. */
    void probe() throws SQLException {
        execute(connection, "");
    }

    /** The wait keys of which somebody has told meanwhile. Blocks for that long at most, if there are none. */
    List<Integer> told(Duration atMost) throws SQLException {
        PGNotification[] notifications =
                connection.unwrap(PgConnection.class).getNotifications((int) Math.max(1, atMost.toMillis()));
        List<Integer> keys = new ArrayList<>();
        for (PGNotification notification : notifications) {
            try {
                keys.add(Integer.valueOf(notification.getParameter()));
            } catch (NumberFormatException e) {
                log.debug("Somebody else uses the channel: {}", notification.getParameter());
            }
        }
        return keys;
    }

    private void execute(String sql, int waitKey) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, waitKey);
            boolean ignored = statement.execute();
        }
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            boolean ignored = statement.execute(sql);
        }
    }

    /** Ends the session. Never blocks for the server, and may be called by any thread. */
    void abort() {
        try {
            connection.abort(SessionFactory.DIRECT);
        } catch (SQLException e) {
            log.debug("A listening session could not be closed properly", e);
        }
    }

    @Override
    public void close() {
        try {
            connection.close();
        } catch (SQLException e) {
            log.debug("A listening session could not be closed properly", e);
        }
    }
}
