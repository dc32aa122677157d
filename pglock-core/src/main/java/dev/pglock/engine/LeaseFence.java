package dev.pglock.engine;

import dev.pglock.CommitFence;
import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockStrategy;
import dev.pglock.store.LockStore;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * The fence of a registry's leases.
 *
 * @param leases null: it has none
 */
record LeaseFence(LockRegistry registry, @Nullable LockStore leases) implements CommitFence {

    @Override
    public boolean covers(LockHandle lock) {
        return lock.strategy() == LockStrategy.LEASE && registry.owns(lock);
    }

    @Override
    public @Nullable String obstacle(Connection connection) throws SQLException {
        return leases == null ? "no lock is a lease" : leases.obstacleToFencing(connection);
    }

    @Override
    public void check(Connection transaction, LockHandle lock) throws SQLException {
        // What is lost here stays lost, whatever the row says: nothing needs to be asked.
        lock.ensureHeld();
        if (leases != null) {
            leases.checkCommit(transaction, new LockStore.Tenancy(lock.name(), lock.key(), lock.fence()));
        }
    }
}
