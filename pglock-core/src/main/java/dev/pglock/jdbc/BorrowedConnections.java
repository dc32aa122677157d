package dev.pglock.jdbc;

import dev.pglock.LockException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connections lent by somebody else's {@link DataSource}. Each piece of work is one transaction, and all that it needs is
 * set for that transaction alone: isolation, read-write and timeouts go back with its end, whatever the session's own
 * settings are, and also where a pooler such as PgBouncer gives the session to somebody else afterwards. What is left, the
 * autocommit flag and the network timeout of the JDBC connection, is put back; a connection with which that fails is
 * aborted rather than given back.
 *
 * <p>The {@code DataSource} must hand out connections of its own at every call. One that takes part in a transaction of
 * the calling thread is refused.
 */
public final class BorrowedConnections extends RecoveringSource {

    private static final Logger log = LoggerFactory.getLogger(BorrowedConnections.class);

    private final DataSource lender;
    private final LocalTransaction transaction;

    /**
     * Creates the source. Borrows nothing.
     *
     * @param lender where connections come from; it is not closed
     * @param timeouts how long things may take
     */
    public BorrowedConnections(DataSource lender, JdbcTimeouts timeouts) {
        this.lender = lender;
        this.transaction = new LocalTransaction(timeouts);
    }

    private Connection borrowed() throws SQLException {
        try {
            return lender.getConnection();
        } catch (LockException e) {
            throw e;
        } catch (RuntimeException e) {
            throw SessionFactory.unreachable(e);
        }
    }

    @Override
    Loan lend(Lane lane, boolean fresh, Budget budget) throws SQLException {
        Connection connection = borrowed();
        BorrowedLoan loan = new BorrowedLoan(connection);
        boolean lent = false;
        boolean unusable = false;
        try {
            SupportedDatabase.check(connection);
            refuseOpenTransaction(connection);
            loan.begin(ofAttempt(fresh, budget));
            lent = true;
            return loan;
        } catch (SQLException e) {
            unusable = SqlStates.kindOf(e) == SqlStates.Kind.READ_ONLY;
            throw e;
        } finally {
            if (!lent) {
                loan.discard(unusable);
            }
        }
    }

    @Override
    boolean lendsWhatMayBeBroken() {
        return true;
    }

    private static void refuseOpenTransaction(Connection connection) throws SQLException {
        if (connection.isWrapperFor(BaseConnection.class)
                && connection.unwrap(BaseConnection.class).getTransactionState() != TransactionState.IDLE) {
            throw new SQLException(
                    "The DataSource hands out a connection inside an open transaction, in which a lock must"
                            + " not be taken: give pglock the DataSource behind it, or connections of its own"
                            + " (pglock.datasource.*). HikariCP does so too for a new connection, with auto-commit=false and a"
                            + " connection-init-sql, unless isolate-internal-queries=true");
        }
    }

    /** As it is lent: its settings are the application's own, as for all its work. It goes back in the mode it came in. */
    @Override
    public Connection open(Duration budget) throws SQLException {
        Connection connection = borrowed();
        boolean lent = false;
        try {
            SupportedDatabase.check(connection);
            refuseOpenTransaction(connection);
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(false);
            lent = true;
            return autoCommit ? LentForWork.around(connection) : connection;
        } finally {
            if (!lent) {
                connection.close();
            }
        }
    }

    @Override
    public void close() {
        // Everything belongs to the lender.
    }

    private final class BorrowedLoan implements Loan {

        private final Connection connection;
        private boolean touched;
        private boolean inTransaction;
        private boolean autoCommit;
        private int networkTimeout;

        BorrowedLoan(Connection connection) {
            this.connection = connection;
        }

        void begin(Budget budget) throws SQLException {
            autoCommit = connection.getAutoCommit();
            networkTimeout = connection.getNetworkTimeout();
            touched = true;
            connection.setNetworkTimeout(SessionFactory.DIRECT, budget.millisLeft());
            // The driver must open no transaction of its own. With nothing under way this is no message to the server.
            connection.setAutoCommit(true);
            inTransaction = true;
            transaction.begin(connection);
        }

        @Override
        public Connection connection() {
            return connection;
        }

        @Override
        public void giveBack() throws SQLException {
            transaction.commit(connection);
            inTransaction = false;
            restore();
            connection.close();
        }

        @Override
        public void discard(boolean unusable) {
            try {
                if (unusable) {
                    connection.abort(SessionFactory.DIRECT);
                } else {
                    if (inTransaction) {
                        transaction.rollback(connection);
                    }
                    restore();
                }
            } catch (SQLException e) {
                log.debug("A borrowed connection could not be put back as it was and is aborted", e);
                abort();
            } finally {
                close();
            }
        }

        private void restore() throws SQLException {
            if (touched) {
                connection.setAutoCommit(autoCommit);
                connection.setNetworkTimeout(SessionFactory.DIRECT, networkTimeout);
            }
        }

        private void abort() {
            try {
                connection.abort(SessionFactory.DIRECT);
            } catch (SQLException e) {
                log.debug("A borrowed connection could not be aborted", e);
            }
        }

        private void close() {
            try {
                connection.close();
            } catch (SQLException e) {
                log.debug("A borrowed connection could not be closed", e);
            }
        }
    }
}
