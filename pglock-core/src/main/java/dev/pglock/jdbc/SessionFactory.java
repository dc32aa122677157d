package dev.pglock.jdbc;

import dev.pglock.LockException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.postgresql.core.BaseConnection;
import org.postgresql.jdbc.PgConnection;

/**
 * Opens sessions of our own: physical connections outside every pool, set up so that no setting of a role, a database or
 * a URL decides over our statements. Thread-safe.
 */
public final class SessionFactory {

    /** pgjdbc sets the socket's timeout on the calling thread and uses no executor. */
    static final Executor DIRECT = Runnable::run;

    // A setting that this server does not have is left out. On a session other than the one expected, nothing is set.
    private static final String SETTINGS = """
            SELECT set_config(s.name, ours.value, false)
            FROM unnest(?::text[], ?::text[]) AS ours (name, value) JOIN pg_catalog.pg_settings s USING (name)
            WHERE pg_backend_pid() = ?::int
            """;

    /** So cheap that it is done before even the shortest timeout of a role, which would end the other. */
    private static final String ENOUGH_TIME = """
            SELECT set_config('statement_timeout', ?::text, false) WHERE pg_backend_pid() = ?::int
            """;

    private static final int ATTEMPTS = 10;

    /** Undoes what is in the way of somebody else's work, on that session and no other. Tells where it looks for tables. */
    private static final String OWN_WAYS = """
            SELECT current_setting('search_path') AS search_path,
                   set_config(s.name, CASE s.name WHEN 'idle_session_timeout' THEN '0' ELSE s.reset_val END, false)
            FROM pg_catalog.pg_settings s
            WHERE pg_backend_pid() = ?::int
              AND s.name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'enable_seqscan',
                             'idle_session_timeout')
            """;

    /** A role that the work has taken on may have no right to our table. */
    private static final String OWN_ROLE = """
            RESET SESSION AUTHORIZATION;
            RESET ROLE
            """;

    private final Supplier<ConnectionSpec> specs;
    private final SessionSettings settings;

    /**
     * Creates a factory. Opens nothing.
     *
     * @param specs asked for each new session
     * @param settings what every session is set to
     */
    public SessionFactory(Supplier<ConnectionSpec> specs, SessionSettings settings) {
        this.specs = specs;
        this.settings = settings;
    }

    /**
     * The settings of all sessions.
     *
     * @return as given
     */
    public SessionSettings settings() {
        return settings;
    }

    /**
     * Opens a session. Blocks for the budget at most.
     *
     * @param budget how long it may take
     * @return the session: autocommit, READ COMMITTED, read-write, with timeouts, unless {@link #isBehindPooler}; the
     *     caller closes it
     * @throws SQLException if that failed
     * @throws UnsupportedDatabaseException if this is not a PostgreSQL that is supported
     */
    public Connection open(Duration budget) throws SQLException {
        return open(Budget.of(budget));
    }

    /**
     * Whether something like PgBouncer stands between the driver and the server. The server's sessions may then be given to
     * others between two transactions: they are left as they are, and no statement is prepared on them.
     *
     * @param session one that a factory has opened
     * @return true if the server process that answers is not the one that the driver was told of
     * @throws SQLException if the connection is none of the PostgreSQL driver's
     */
    public static boolean isBehindPooler(Connection session) throws SQLException {
        return session.unwrap(PgConnection.class).getPrepareThreshold() == 0;
    }

    Connection open(Budget budget) throws SQLException {
        ConnectionSpec spec = spec();
        try {
            return PlatformThread.call(() -> opened(spec, budget));
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
                // Of the work on a session this would say that somebody else is in the way. Nobody is.
                throw new SQLException("A session could not be set up in time: " + e.getMessage(), "08001", e);
            }
            throw e;
        }
    }

    private Connection opened(ConnectionSpec spec, Budget budget) throws SQLException {
        Connection session = connect(spec, budget);
        boolean ready = false;
        try {
            SupportedDatabase.check(session);
            session.setNetworkTimeout(DIRECT, budget.millisLeft());
            session.setAutoCommit(true);
            if (!applySettings(session, announcedPid(session))) {
                session.unwrap(PgConnection.class).setPrepareThreshold(0);
            }
            ready = true;
            return session;
        } finally {
            if (!ready) {
                session.abort(DIRECT);
            }
        }
    }

    private ConnectionSpec spec() throws SQLException {
        try {
            return specs.get();
        } catch (LockException e) {
            throw e;
        } catch (RuntimeException e) {
            throw unreachable(e);
        }
    }

    /**
     * Whoever fetches a password or a token, from a vault say, may declare no checked exception. That he could not is a
     * failure to reach the database like any other, and ends as one does.
     */
    static SQLException unreachable(RuntimeException e) {
        return new SQLException("No connection could be asked for: " + e, "08001", e);
    }

    private static int announcedPid(Connection session) throws SQLException {
        return session.unwrap(BaseConnection.class).getQueryExecutor().getBackendPID();
    }

    /** The driver gives up connecting when its thread is interrupted, with an exception that says nothing of that. */
    private Connection connect(ConnectionSpec spec, Budget budget) throws SQLException {
        try (DeferredInterrupt interrupt = new DeferredInterrupt()) {
            while (true) {
                boolean ignored = interrupt.take();
                try {
                    return DriverManager.getConnection(spec.url(), properties(spec, budget));
                } catch (SQLException | RuntimeException e) {
                    if (!interrupt.take()) {
                        throw e;
                    }
                    if (budget.isUsedUp()) {
                        throw new SQLException("Interrupted until there was no time left to connect", "08001", e);
                    }
                }
            }
        }
    }

    /**
     * Leaves a session that a factory has opened to the work of somebody else: not in autocommit mode, with the timeouts of
     * role and database instead of ours, and as silent as it likes.
     *
     * @param session the session
     * @param pid the server process on which {@link #applySettings} has set it up; any other is left as it is
     * @return its search path, for {@link #takeBack}: that of role, database or URL, or whatever a pooler has made of it;
     *     null if it is another server process
     * @throws SQLException if that failed
     */
    public static @Nullable String leaveToWork(Connection session, int pid) throws SQLException {
        String searchPath;
        try (PreparedStatement statement = session.prepareStatement(OWN_WAYS)) {
            statement.setInt(1, pid);
            try (ResultSet row = statement.executeQuery()) {
                searchPath = row.next() ? row.getString("search_path") : null;
            }
        }
        session.setNetworkTimeout(DIRECT, 0);
        session.setAutoCommit(false);
        return searchPath;
    }

    /** The same for a session that nobody but {@link #open} has set up. */
    static void leaveToWork(Connection session) throws SQLException {
        String ignored = leaveToWork(session, announcedPid(session));
    }

    /**
     * Takes a session back from the work that it was left to: set up as before, whatever the work has set, as the role that
     * has logged in, and with the tables in sight that were.
     *
     * @param session the session, in no transaction
     * @param pid the server process that it is expected to be
     * @param searchPath as {@link #leaveToWork} has told it
     * @return false if it is another one
     * @throws SQLException if that failed
     */
    public boolean takeBack(Connection session, int pid, @Nullable String searchPath) throws SQLException {
        session.setNetworkTimeout(DIRECT, (int) settings.timeouts().answer().toMillis());
        if (session.isReadOnly()) {
            session.setReadOnly(false);
        }
        session.setAutoCommit(true);
        Map<String, String> asBefore = serverSettings();
        if (searchPath != null) {
            asBefore.put("search_path", searchPath);
        }
        if (!applySettings(session, pid, asBefore)) {
            return false;
        }
        try (Statement statement = session.createStatement()) {
            boolean ignored = statement.execute(OWN_ROLE);
        }
        return true;
    }

    private Properties properties(ConnectionSpec spec, Budget budget) {
        Properties properties = new Properties();
        properties.putAll(spec.properties());
        if (spec.username() != null) {
            properties.setProperty("user", spec.username());
        }
        if (spec.password() != null) {
            properties.setProperty("password", spec.password());
        }
        Budget connecting = least(budget, Budget.of(settings.timeouts().connect()));
        // In seconds. Only the last of the three knows fractions; it covers the others, name resolution and all hosts.
        String wholeSeconds = Integer.toString((connecting.millisLeft() + 999) / 1000);
        properties.setProperty("connectTimeout", wholeSeconds);
        properties.setProperty("socketTimeout", wholeSeconds);
        properties.setProperty("loginTimeout", Double.toString(connecting.millisLeft() / 1000.0));
        properties.setProperty("tcpKeepAlive", "true");
        properties.setProperty("ApplicationName", settings.applicationName());
        // The driver's own switches for what we set ourselves
        properties.setProperty("readOnly", "false");
        properties.setProperty("autosave", "never");
        return properties;
    }

    private static Budget least(Budget a, Budget b) {
        return a.end() - b.end() < 0 ? a : b;
    }

    /**
     * Sets a session up for good, as {@link #open} does where no pooler stands in between.
     *
     * @param session the session
     * @param pid the server process that it is expected to be
     * @return false if it is another one, on which nothing was set
     * @throws SQLException if that failed
     */
    public boolean applySettings(Connection session, int pid) throws SQLException {
        return applySettings(session, pid, serverSettings());
    }

    private boolean applySettings(Connection session, int pid, Map<String, String> ours) throws SQLException {
        try {
            return apply(session, pid, ours);
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) != SqlStates.Kind.BUSY) {
                throw e;
            }
            giveTime(session, pid);
            return apply(session, pid, ours);
        }
    }

    private void giveTime(Connection session, int pid) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try (PreparedStatement statement = session.prepareStatement(ENOUGH_TIME)) {
                statement.setString(1, millis(settings.timeouts().statement()));
                statement.setInt(2, pid);
                boolean ignored = statement.execute();
                return;
            } catch (SQLException e) {
                if (attempt == ATTEMPTS || SqlStates.kindOf(e) != SqlStates.Kind.BUSY) {
                    throw e;
                }
            }
        }
    }

    private static boolean apply(Connection session, int pid, Map<String, String> ours) throws SQLException {
        Array names = session.createArrayOf("text", ours.keySet().toArray());
        Array values = session.createArrayOf("text", ours.values().toArray());
        try (PreparedStatement statement = session.prepareStatement(SETTINGS)) {
            statement.setArray(1, names);
            statement.setArray(2, values);
            statement.setInt(3, pid);
            try (ResultSet applied = statement.executeQuery()) {
                return applied.next();
            }
        }
    }

    private Map<String, String> serverSettings() {
        JdbcTimeouts timeouts = settings.timeouts();
        Map<String, String> ours = new LinkedHashMap<>();
        ours.put("application_name", settings.applicationName());
        ours.put("default_transaction_isolation", "read committed");
        ours.put("default_transaction_read_only", "off");
        ours.put("default_transaction_deferrable", "off");
        ours.put("synchronous_commit", "on");
        ours.put("lock_timeout", millis(timeouts.lock()));
        ours.put("statement_timeout", millis(timeouts.statement()));
        ours.put("idle_in_transaction_session_timeout", millis(timeouts.statement()));
        ours.put("transaction_timeout", "0");
        ours.put("idle_session_timeout", "0");
        // All our statements look rows up by a key. A plan that was made and kept while the table was small must do so
        // too.
        ours.put("enable_seqscan", "off");
        return ours;
    }

    private static String millis(Duration duration) {
        return Long.toString(duration.toMillis());
    }
}
