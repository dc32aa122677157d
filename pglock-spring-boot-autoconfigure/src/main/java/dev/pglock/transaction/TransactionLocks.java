package dev.pglock.transaction;

import dev.pglock.LockRegistry;
import dev.pglock.LockStorageException;
import java.sql.Connection;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.NoTransactionException;
import org.springframework.transaction.interceptor.TransactionAspectSupport;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Takes locks that last until the running Spring transaction commits or rolls back, on its own connection. They exclude
 * every other holder of the name, whatever the strategy. Nothing is written, and there is neither a fence nor a heartbeat.
 * Thread-safe.
 */
public final class TransactionLocks {

    private final Supplier<LockRegistry> registry;
    private final DataSource dataSource;

    /**
     * Creates it.
     *
     * @param registry asked at the first use
     * @param dataSource whose transactions are meant; it leads to the database of the locks
     */
    public TransactionLocks(Supplier<LockRegistry> registry, DataSource dataSource) {
        this.registry = registry;
        this.dataSource = dataSource;
    }

    /**
     * Tries to take a lock for the rest of the running transaction. Blocks for a few round trips on its connection.
     *
     * @param name the lock's name
     * @return whether the lock is held
     * @throws IllegalArgumentException if the transaction is in another database than the locks
     * @throws IllegalStateException if no transaction of the data source runs, or a declarative one with propagation
     *     NESTED: rolled back to its savepoint, it would lose the lock in silence. A savepoint that a program has set by
     *     itself cannot be seen
     * @throws LockStorageException if the database failed
     */
    public boolean tryAcquire(String name) {
        refuseNested(name);
        if (!TransactionSynchronizationManager.isActualTransactionActive()) {
            throw noTransaction(name);
        }
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            if (!DataSourceUtils.isConnectionTransactional(connection, dataSource)) {
                throw noTransaction(name);
            }
            return registry.get().tryAcquireInTransaction(connection, name);
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    private static IllegalStateException noTransaction(String name) {
        return new IllegalStateException(
                "Lock '" + name + "' is to last until the transaction ends, but no transaction of "
                        + "its DataSource runs: call it inside @Transactional or a TransactionTemplate, or use LockRegistry");
    }

    private static void refuseNested(String name) {
        boolean nested;
        try {
            nested = TransactionAspectSupport.currentTransactionStatus().hasSavepoint();
        } catch (NoTransactionException e) {
            // None that was declared; a program's own is looked at by its connection.
            nested = false;
        }
        if (nested) {
            throw new IllegalStateException(
                    "Lock '" + name + "' cannot be taken in a nested transaction: a rollback to its "
                            + "savepoint would end the lock in silence. Take it in the outer transaction");
        }
    }
}
