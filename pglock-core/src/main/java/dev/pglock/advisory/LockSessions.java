package dev.pglock.advisory;

import dev.pglock.jdbc.PlatformThread;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.TransactionPooler;
import dev.pglock.jdbc.UnsupportedDatabaseException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens lock sessions: checked for what would make their locks worthless (a standby, a read-only server, a transaction
 * pooler in between), and set up so that server and network notice soon when this process is gone.
 */
public final class LockSessions {

    private static final Logger log = LoggerFactory.getLogger(LockSessions.class);

    private static final String LOOK = """
            SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby,
                   current_setting('transaction_read_only')::boolean AS read_only
            """;

    /** How long the server's side takes at most to notice that nobody is there: idle time, then three probes. */
    private static final String KEEPALIVE = """
            SELECT set_config('tcp_keepalives_idle', ?, false), set_config('tcp_keepalives_interval', ?, false),
                   set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', ?, false)
            """;

    /** Not on every platform. */
    private static final String CHECK_CLIENT = "SELECT set_config('client_connection_check_interval', '1s', false)";

    private final SessionFactory sessions;
    private final Duration lease;

    /**
     * Creates the opener. Opens nothing.
     *
     * @param sessions opens connections outside every pool
     * @param lease how soon a vanished holder is to be noticed
     */
    public LockSessions(SessionFactory sessions, Duration lease) {
        this.sessions = sessions;
        this.lease = lease;
    }

    /**
     * Opens a session that can carry locks. Blocks for the connection and some round trips.
     *
     * @return the session; the caller closes it
     * @throws SQLException if the database cannot be reached, or is a standby or read-only
     * @throws UnsupportedDatabaseException if a transaction pooler stands in between; the message names the ways out
     */
    LockSession open() throws SQLException {
        return open(sessions.settings().timeouts().work());
    }

    LockSession open(Duration budget) throws SQLException {
        long until = System.nanoTime() + budget.toNanos();
        Connection session = sessions.open(budget);
        return PlatformThread.call(() -> ready(session, until));
    }

    private LockSession ready(Connection session, long until) throws SQLException {
        boolean ready = false;
        try {
            hurry(session, until);
            int pid = check(session);
            hurry(session, until);
            if (TransactionPooler.standsBetween(sessions, session)
                    || (SessionFactory.isBehindPooler(session) && !sessions.applySettings(session, pid))) {
                throw transactionPooler();
            }
            hurry(session, until);
            setUp(session);
            ready = true;
            return new LockSession(session, pid, sessions, lease);
        } finally {
            if (!ready) {
                session.close();
            }
        }
    }

    /** A limit holds for each answer by itself: where all of them are slow, together they must not take longer either. */
    private static void hurry(Connection session, long until) throws SQLException {
        long left = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
        session.setNetworkTimeout(Runnable::run, (int) Math.max(1, Math.min(Integer.MAX_VALUE, left)));
    }

    /**
     * Opens a session and closes it again, to see at start-up what is in the way.
     *
     * @throws SQLException if the database cannot be reached, or is a standby or read-only
     * @throws UnsupportedDatabaseException if a transaction pooler stands in between
     */
    public void probe() throws SQLException {
        open().close();
    }

    private static int check(Connection session) throws SQLException {
        try (Statement statement = session.createStatement();
                ResultSet row = statement.executeQuery(LOOK)) {
            row.next();
            if (row.getBoolean("standby")) {
                throw new SQLException(
                        "The server is a standby: its advisory locks exclude nobody on the primary. Point "
                                + "pglock.datasource.url at the primary, with targetServerType=primary for instance",
                        "25006");
            }
            if (row.getBoolean("read_only")) {
                throw new SQLException(
                        "The session is read-only: after a failover the locks would be elsewhere", "25006");
            }
            return row.getInt("pid");
        }
    }

    static UnsupportedDatabaseException transactionPooler() {
        return new UnsupportedDatabaseException(
                "A connection pooler in transaction mode stands between this application and PostgreSQL: session advisory "
                        + "locks would be taken on one session and looked for on another. Either set pglock.strategy=lease, "
                        + "which works behind it, or give the locks a direct URL (pglock.datasource.url)");
    }

    private void setUp(Connection session) throws SQLException {
        String third = Long.toString(Math.max(1, lease.toSeconds() / 3));
        try (PreparedStatement statement = session.prepareStatement(KEEPALIVE)) {
            statement.setString(1, third);
            statement.setString(2, Long.toString(Math.max(1, lease.toSeconds() / 6)));
            statement.setString(3, Long.toString(lease.toMillis()));
            boolean ignored = statement.execute();
        }
        try (Statement statement = session.createStatement()) {
            boolean ignored = statement.execute(CHECK_CLIENT);
        } catch (SQLException e) {
            log.debug("The server cannot watch its clients while it works for them", e);
        }
    }
}
