package dev.pglock.transaction;

import dev.pglock.CommitFence;
import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockStorageException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Checks the commits of one transaction manager, as the last thing before each. What it throws rolls the transaction back:
 * the manager does so for every exception that is none of its own.
 */
final class FencedManager implements TransactionExecutionListener {

    private static final Logger log = LoggerFactory.getLogger(FencedManager.class);

    /** A statement has failed, and PostgreSQL turns the commit into a rollback. */
    private static final String IN_FAILED_TRANSACTION = "25P02";

    private static final long PAUSE = TimeUnit.MINUTES.toNanos(1);

    private enum Decision {
        OPEN,
        FENCED,
        NOT_FENCED
    }

    private final String name;
    private final TransactionSource source;
    private final FencedTransactions rules;

    private volatile Decision decision = Decision.OPEN;
    private volatile long askAgainAt = System.nanoTime();
    private volatile boolean warned;

    FencedManager(String name, TransactionSource source, FencedTransactions rules) {
        this.name = name;
        this.source = source;
        this.rules = rules;
    }

    /** Also for the end of a nested or participating transaction, which commits nothing. */
    @Override
    public void beforeCommit(TransactionExecution transaction) {
        if (!transaction.isNewTransaction() || transaction.isReadOnly() || transaction.isRollbackOnly()) {
            return;
        }
        List<LockHandle> locks = LockContext.all();
        if (!locks.isEmpty() && decision != Decision.NOT_FENCED && rules.fencing() != Fencing.OFF) {
            checkCommit(locks);
        }
    }

    private void checkCommit(List<LockHandle> locks) {
        CommitFence fence = rules.fence().orElse(null);
        if (fence == null) {
            return;
        }
        List<LockHandle> covered =
                locks.stream().filter(fence::covers).distinct().toList();
        if (covered.isEmpty()) {
            return;
        }
        DataSource dataSource = source.dataSource();
        String obstacle = source.obstacle();
        if (obstacle == null && dataSource != null && !TransactionSynchronizationManager.hasResource(dataSource)) {
            obstacle = "it shows nobody the connections of its transactions";
        }
        if (obstacle != null) {
            settle(obstacle);
            return;
        }
        if (dataSource == null) {
            decision = Decision.NOT_FENCED;
            return;
        }
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            if (isFenced(fence, connection)) {
                covered.forEach(lock -> check(fence, connection, lock));
            }
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    private static void check(CommitFence fence, Connection connection, LockHandle lock) {
        try {
            fence.check(connection, lock);
        } catch (SQLException e) {
            if (!commitsNothing(e)) {
                throw unknown("Lock '" + lock.name() + "' may be lost", e);
            }
        }
    }

    private static boolean commitsNothing(SQLException failure) {
        return IN_FAILED_TRANSACTION.equals(failure.getSQLState());
    }

    private boolean isFenced(CommitFence fence, Connection connection) {
        boolean required = rules.fencing() == Fencing.REQUIRED;
        if (decision == Decision.OPEN && (required || System.nanoTime() - askAgainAt >= 0)) {
            try {
                settle(fence.obstacle(connection));
            } catch (SQLException | LockStorageException e) {
                if (e instanceof SQLException failure && commitsNothing(failure)) {
                    return false;
                }
                if (required) {
                    throw unknown("Commits of '" + name + "' are required to be fenced", e);
                }
                // Asking may take as long as the commit can wait for a connection: not every one is to.
                askAgainAt = System.nanoTime() + PAUSE;
                warn("whether that is possible could not be found out, and is tried again: " + e.getMessage());
            }
        }
        return decision == Decision.FENCED;
    }

    private static LockStorageException unknown(String what, Exception cause) {
        return new LockStorageException(
                what + ": before the commit that could not be found out, so it is rolled back: " + cause.getMessage(),
                cause);
    }

    // ---- at start-up

    /**
     * Decides as long as there is no lock that waits for it. What cannot be found out now is left to the first commit.
     *
     * @throws FencingImpossibleException if it is required, and never possible
     */
    void decide(CommitFence fence) {
        DataSource dataSource = source.dataSource();
        String obstacle = source.obstacle();
        if (obstacle != null) {
            settle(obstacle);
        } else if (dataSource != null && decision == Decision.OPEN) {
            try (Connection connection = dataSource.getConnection()) {
                obstacle = fence.obstacle(connection);
            } catch (SQLException | RuntimeException e) {
                // An application's DataSource may have its reasons to give nobody a connection at this moment.
                log.debug("Whether commits of '{}' can be fenced is found out by the first of them", name, e);
                return;
            }
            settle(obstacle);
        }
    }

    boolean isOfDatabase() {
        return source.obstacle() != null || source.dataSource() != null;
    }

    private void settle(@Nullable String obstacle) {
        if (obstacle == null) {
            decision = Decision.FENCED;
            log.debug("Commits of '{}' are fenced", name);
            return;
        }
        if (rules.fencing() == Fencing.REQUIRED) {
            throw new FencingImpossibleException("Commits of '" + name
                    + "' under leases are required to be fenced, but cannot be: " + obstacle + ".");
        }
        decision = Decision.NOT_FENCED;
        warn(obstacle);
    }

    private void warn(String why) {
        if (!warned) {
            warned = true;
            log.warn(
                    "Commits of '{}' under leases are not fenced ({}): one may go through although its lease was lost just"
                            + " before",
                    name,
                    why);
        }
    }
}
