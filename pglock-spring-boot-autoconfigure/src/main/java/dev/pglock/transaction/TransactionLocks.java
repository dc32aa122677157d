package dev.pglock.transaction;

import dev.pglock.LockRegistry;
import dev.pglock.LockStorageException;
import java.sql.Connection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.NoTransactionException;
import org.springframework.transaction.interceptor.TransactionAspectSupport;
import org.springframework.transaction.support.TransactionSynchronization;
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
     *     NESTED: rolled back to its savepoint, it would lose the lock in silence. Where the savepoint is seen only by its
     *     rollback, because it was set further outside or by a program, the transaction's commit throws this instead, and
     *     all of it is rolled back. What is set and rolled back past Spring cannot be seen
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
            boolean held = registry.get().tryAcquireInTransaction(connection, name);
            if (held) {
                watch(name);
            }
            return held;
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    /** Whoever takes a lock once more has it from the first time on. */
    private void watch(String name) {
        boolean watched = TransactionSynchronizationManager.getSynchronizations().stream()
                .anyMatch(known -> known instanceof Watch watch && watch.isOf(this, name));
        if (!watched) {
            TransactionSynchronizationManager.registerSynchronization(new Watch(this, name));
        }
    }

    /** Sees to it that nothing is committed once a lock has ended with a rollback to a savepoint that is older than it. */
    private static final class Watch implements TransactionSynchronization {

        private final TransactionLocks owner;
        private final String name;
        private final Set<Object> younger = Collections.newSetFromMap(new IdentityHashMap<>());
        private boolean lost;

        Watch(TransactionLocks owner, String name) {
            this.owner = owner;
            this.name = name;
        }

        boolean isOf(TransactionLocks locks, String lock) {
            return owner == locks && name.equals(lock);
        }

        @Override
        public void savepoint(Object savepoint) {
            younger.add(savepoint);
        }

        @Override
        public void savepointRollback(Object savepoint) {
            lost |= !younger.contains(savepoint);
        }

        /** None of Spring's transaction exceptions: after those, not every manager rolls back. */
        @Override
        public void beforeCommit(boolean readOnly) {
            if (lost) {
                throw new IllegalStateException(
                        "Lock '" + name + "' was to last until the transaction ends, but ended with a rollback to a "
                                + "savepoint that was set before, so all is rolled back. Take it outside of the nested transaction");
            }
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
