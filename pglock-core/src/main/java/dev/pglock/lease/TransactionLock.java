package dev.pglock.lease;

import dev.pglock.LockState;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.jdbc.SqlWork;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Locks that last as long as somebody else's transaction, for both strategies: by the name's key, and then by a look at its
 * row. No row is written, and there is no fence.
 *
 * <p>The look comes after the key, in a snapshot of its own: under REPEATABLE READ and SERIALIZABLE, where the transaction's
 * snapshot may be older than the key, on a connection of ours. A denial gives the key back, by a savepoint, and an error
 * leaves the caller's transaction as it was.
 */
public final class TransactionLock {

    private static final String TRY_KEY = """
            SELECT pg_try_advisory_xact_lock(?::bigint) AS got, pg_is_in_recovery() AS standby,
                   current_database() AS database, extract(epoch FROM pg_postmaster_start_time())::text AS server,
                   current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') AS sees_news
            """;

    private final ConnectionSource own;
    private final SameDatabase home;
    private final LeaseTable table;
    private final String namespace;
    private final Duration budget;

    /** Null: the table has not been found yet. */
    private volatile @Nullable LeaseRows rows;

    /**
     * Creates the locks of one namespace.
     *
     * @param own for the look where the transaction's own would be of no use
     * @param table the lease table; it need not exist. Without a schema it is looked up on a connection of ours: the caller's
     *     search path may lead to another of that name
     * @param namespace the namespace
     * @param budget how long that look may take
     */
    public TransactionLock(ConnectionSource own, LeaseTable table, String namespace, Duration budget) {
        this.own = own;
        this.home = new SameDatabase(own, budget);
        this.table = table;
        this.rows = table.isQualified() ? new LeaseRows(table) : null;
        this.namespace = namespace;
        this.budget = budget;
    }

    /**
     * Tries to take a lock until the end of a transaction.
     *
     * @param transaction a connection to the database of the locks, in a transaction
     * @param name the lock's name
     * @param key its key
     * @return whether the lock is held
     * @throws IllegalStateException if the connection is in autocommit mode, where the lock would end at once
     * @throws IllegalArgumentException if it leads to another database
     * @throws SQLException if a statement failed
     */
    public boolean tryAcquire(Connection transaction, String name, long key) throws SQLException {
        if (transaction.getAutoCommit()) {
            throw new IllegalStateException(
                    "Lock '" + name
                            + "' was to last until the end of a transaction, but the connection is in autocommit mode: it would end at once");
        }
        Savepoint before = transaction.setSavepoint();
        boolean held = false;
        try {
            held = tryAcquireInside(transaction, name, key);
            return held;
        } finally {
            if (!held) {
                transaction.rollback(before);
            }
            transaction.releaseSavepoint(before);
        }
    }

    private boolean tryAcquireInside(Connection transaction, String name, long key) throws SQLException {
        boolean seesNews;
        try (PreparedStatement statement = transaction.prepareStatement(TRY_KEY)) {
            statement.setLong(1, key);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                if (row.getBoolean("standby")) {
                    throw new SQLException("The server is a standby: its locks exclude nobody on the primary", "25006");
                }
                home.require(row.getString("database"), row.getString("server"));
                if (!row.getBoolean("got")) {
                    return false;
                }
                seesNews = row.getBoolean("sees_news");
            }
        }
        LeaseRows there = rows();
        if (there == null) {
            // Without the table there is nothing that could say no.
            return true;
        }
        SqlWork<Boolean> look = (connection, unanswered) -> isFree(there, connection, name);
        return seesNews ? here(transaction, look) : onOwn(look);
    }

    private @Nullable LeaseRows rows() throws SQLException {
        LeaseRows known = rows;
        if (known == null) {
            LeaseTable found = own.<@Nullable LeaseTable>run(
                    ConnectionSource.Lane.WORK,
                    budget,
                    (connection, unanswered) -> LeaseSchema.resolve(connection, table));
            known = found == null ? null : new LeaseRows(found);
            rows = known;
        }
        return known;
    }

    /** What the caller's role may not read, ours may. */
    private boolean here(Connection transaction, SqlWork<Boolean> look) throws SQLException {
        Savepoint before = transaction.setSavepoint();
        boolean looked = false;
        try {
            boolean free = look.run(transaction, false);
            looked = true;
            return free;
        } catch (SQLException e) {
            return switch (SqlStates.kindOf(e)) {
                case MISSING_TABLE, MISSING_PRIVILEGE -> onOwn(look);
                default -> throw e;
            };
        } finally {
            if (!looked) {
                transaction.rollback(before);
            }
            transaction.releaseSavepoint(before);
        }
    }

    /** A table that has gone says nothing either. */
    private boolean onOwn(SqlWork<Boolean> look) throws SQLException {
        try {
            return own.run(ConnectionSource.Lane.WORK, budget, look);
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE) {
                return true;
            }
            throw e;
        }
    }

    private boolean isFree(LeaseRows rows, Connection connection, String name) throws SQLException {
        return rows.read(connection, namespace, name).stream()
                .map(info -> info.state())
                .allMatch(state -> state == LockState.FREE || state == LockState.EXPIRED);
    }
}
