package dev.pglock.lease;

import dev.pglock.LockLostException;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlWork;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.store.StoreIdentity;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The last thing that a transaction does before it commits under a lease: it takes the name's key, shared and until its
 * end, so that nobody can be granted the name before, and then sees that the tenure still lasts. The key is always tried,
 * never waited for, and heartbeats are not touched.
 *
 * @see TransactionLock why the row may have to be read elsewhere
 */
public final class FencedCommit {

    /**
     * From here on, a client that freezes or vanishes would keep the name from everybody until its session ends: the server
     * is told to end it, unless it would sooner anyway. The look that follows must not wait for whoever has the whole table
     * locked for longer than its answer is of use; what the transaction had set for itself is told, to be put back.
     */
    private static final String TRY_KEY = """
            WITH found AS MATERIALIZED (
              SELECT current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') AS sees_news,
                     current_setting('lock_timeout') AS lock_timeout),
            ask AS MATERIALIZED (
              SELECT sees_news, lock_timeout,
                     sees_news AND lock_timeout::interval NOT BETWEEN interval '1 ms' AND ?::interval AS waits_too_long
              FROM found)
            SELECT pg_try_advisory_xact_lock_shared(?::bigint) AS got, sees_news,
                   CASE WHEN waits_too_long THEN lock_timeout END AS their_lock_timeout,
                   CASE WHEN waits_too_long THEN set_config('lock_timeout', ?::text, true) END,
                   CASE WHEN current_setting('idle_in_transaction_session_timeout')::interval
                             BETWEEN interval '1 ms' AND ?::interval THEN NULL
                        ELSE set_config('idle_in_transaction_session_timeout', ?::text, true) END
            FROM ask
            """;

    /** What waits for a lock comes first, and what puts the transaction's own setting back comes with the answer. */
    private static final String STILL_OURS = """
            SELECT CASE WHEN ?::text IS NOT NULL THEN set_config('lock_timeout', ?::text, true) END
            FROM pglock_lease
            WHERE namespace = ?::text AND name = ?::text AND fence = ?::bigint AND holder = ?::uuid
              AND expires_at > clock_timestamp()
            """;

    /** By the catalogue, because nothing in it fails where a table or a right is missing. */
    private static final String WHERE = """
            SELECT current_database() AS database, extract(epoch FROM pg_postmaster_start_time())::text AS server,
                   EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                           WHERE n.nspname = ?::text AND c.relname = ?::text
                             AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')) AS may_read,
                   quote_ident(current_user) AS role
            """;

    private static final String BUSY = "55P03";
    private static final int ATTEMPTS = 6;
    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(2);

    private final ConnectionSource own;
    private final SameDatabase home;
    private final LeaseTable table;
    private final String stillOurs;
    private final StoreIdentity identity;
    private final Duration budget;
    private final String wait;
    private final String patience;

    /**
     * Creates the check of one replica.
     *
     * @param own for the look where the transaction's own would be of no use
     * @param table the lease table, with its schema
     * @param identity whose tenures
     * @param budget how long the look may take; after twice that without a word, the server ends the transaction
     */
    public FencedCommit(ConnectionSource own, LeaseTable table, StoreIdentity identity, Duration budget) {
        this.own = own;
        this.home = new SameDatabase(own, budget);
        this.table = table;
        this.stillOurs = table.in(STILL_OURS);
        this.identity = identity;
        this.budget = budget;
        this.wait = budget.toMillis() + "ms";
        this.patience = budget.multipliedBy(2).toMillis() + "ms";
    }

    /**
     * Finds out whether {@link #check} is of use on a connection.
     *
     * @param connection one of the application
     * @return why not, as the end of a sentence; null: it is
     * @throws SQLException if that could not be found out
     */
    @Nullable
    String obstacle(Connection connection) throws SQLException {
        String product = connection.getMetaData().getDatabaseProductName();
        if (!product.equals("PostgreSQL")) {
            return "its connections lead to " + product;
        }
        try (PreparedStatement statement = connection.prepareStatement(WHERE)) {
            statement.setString(1, table.schema());
            statement.setString(2, table.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                if (!home.is(row.getString("database"), row.getString("server"))) {
                    return "its connections do not lead to the database of the locks";
                }
                if (!row.getBoolean("may_read")) {
                    String role = row.getString("role");
                    return "the role of its connections may not read the lease table: GRANT USAGE ON SCHEMA "
                            + table.schemaSql() + " TO " + role + "; GRANT SELECT ON " + table.sql() + " TO " + role;
                }
                return null;
            }
        }
    }

    /**
     * Checks that a transaction may commit.
     *
     * @param transaction the connection that is about to
     * @param held under which tenure
     * @throws LockLostException if the tenure has ended
     * @throws SQLException if that could not be found out
     */
    public void check(Connection transaction, Tenancy held) throws SQLException {
        SqlWork<Boolean> look = (connection, unanswered) -> isStillOurs(connection, held, null);
        Tried tried = tryKey(transaction, held.key());
        Key key = tried.key();
        boolean ours = key == Key.HAD_AND_SEES_NEWS
                ? isStillOurs(transaction, held, tried.lockTimeout())
                : own.run(ConnectionSource.Lane.WORK, budget, look);
        if (!ours) {
            throw new LockLostException(
                    held.name(), held.fence(), "the tenure ended before the commit, which is rolled back");
        }
        if (key == Key.TAKEN) {
            throw new SQLException("The key of the lock is taken by somebody else: nothing can be committed", BUSY);
        }
    }

    /** What came of trying the key, and whether the transaction sees what was committed since it began. */
    private enum Key {
        HAD_AND_SEES_NEWS,
        HAD,
        TAKEN
    }

    /**
     * An answer.
     *
     * @param lockTimeout to be put back; null: it is as the transaction has it
     */
    private record Tried(Key key, @Nullable String lockTimeout) {}

    private Tried tryKey(Connection transaction, long key) throws SQLException {
        try (PreparedStatement statement = transaction.prepareStatement(TRY_KEY)) {
            statement.setString(1, wait);
            statement.setLong(2, key);
            statement.setString(3, wait);
            statement.setString(4, patience);
            statement.setString(5, patience);
            String lockTimeout = null;
            for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
                if (attempt > 1) {
                    LockSupport.parkNanos(PAUSE);
                }
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    // The second time it is ours.
                    lockTimeout = attempt == 1 ? row.getString("their_lock_timeout") : lockTimeout;
                    if (row.getBoolean("got")) {
                        return new Tried(row.getBoolean("sees_news") ? Key.HAD_AND_SEES_NEWS : Key.HAD, lockTimeout);
                    }
                }
            }
            return new Tried(Key.TAKEN, lockTimeout);
        }
    }

    private boolean isStillOurs(Connection connection, Tenancy held, @Nullable String lockTimeout) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(stillOurs)) {
            statement.setString(1, lockTimeout);
            statement.setString(2, lockTimeout);
            statement.setString(3, identity.namespace());
            statement.setString(4, held.name());
            statement.setLong(5, held.fence());
            statement.setObject(6, identity.holder());
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }
}
