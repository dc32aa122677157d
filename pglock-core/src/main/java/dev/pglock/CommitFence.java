package dev.pglock;

import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * Lets transactions commit only while a lock is still held, for code that runs transactions. The locks must be leases, and
 * the transactions those of the database that keeps them. Thread-safe.
 */
public interface CommitFence {

    /**
     * Whether commits under a lock can be fenced at all.
     *
     * @param lock a lock
     * @return true for a lease of the registry that this belongs to
     */
    boolean covers(LockHandle lock);

    /**
     * Finds out whether the transactions of a connection can be fenced. It must lead to the same database of the same server
     * as the locks do, and its role must be allowed to read their table. Blocks for one round trip on it, and for one on
     * a connection of the registry's own. It fails no transaction of a PostgreSQL.
     *
     * @param connection as transactions have it; inside one or not
     * @return why not, in words about whatever uses such connections; null: they can
     * @throws SQLException if that could not be found out
     * @throws LockStorageException likewise
     */
    @Nullable
    String obstacle(Connection connection) throws SQLException;

    /**
     * Checks that a transaction may commit, to be called just before. If it returns, nobody else is granted the lock until
     * the transaction has ended. Blocks for two round trips on its connection, and never for a lock of somebody else.
     *
     * @param transaction the connection that is about to commit, not in autocommit mode
     * @param lock under which it ran; one that is {@linkplain #covers covered}
     * @throws LockLostException if the lock is held no longer; the transaction is to be rolled back
     * @throws SQLException if that could not be found out; likewise
     * @throws LockStorageException likewise
     */
    void check(Connection transaction, LockHandle lock) throws SQLException;
}
