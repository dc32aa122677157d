package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A transaction for our statements on a session that is not ours: all that they need is set for it alone and goes back with
 * its end, whatever the session's own settings are, and also where a pooler gives the session to somebody else afterwards.
 */
final class LocalTransaction {

    /** BEGIN … READ WRITE on a standby: "cannot set transaction read-write mode during recovery". */
    private static final String FEATURE_NOT_SUPPORTED = "0A000";

    private static final String READ_ONLY = "25006";
    private static final int HAS_TRANSACTION_TIMEOUT = 17;

    private final String begin;
    private final String beginWithTransactionTimeout;

    LocalTransaction(JdbcTimeouts timeouts) {
        this.begin = """
                BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE;
                SET LOCAL synchronous_commit = on;
                SET LOCAL lock_timeout = %d;
                SET LOCAL statement_timeout = %d;
                SET LOCAL idle_in_transaction_session_timeout = %d
                """.formatted(
                        timeouts.lock().toMillis(),
                        timeouts.statement().toMillis(),
                        timeouts.statement().toMillis());
        this.beginWithTransactionTimeout = begin + "; SET LOCAL transaction_timeout = 0";
    }

    /** The driver must be in autocommit mode, so that it opens no transaction of its own. */
    void begin(Connection connection) throws SQLException {
        int version = connection.getMetaData().getDatabaseMajorVersion();
        execute(connection, version < HAS_TRANSACTION_TIMEOUT ? begin : beginWithTransactionTimeout);
    }

    void commit(Connection connection) throws SQLException {
        execute(connection, "COMMIT");
    }

    void rollback(Connection connection) throws SQLException {
        execute(connection, "ROLLBACK");
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            boolean ignored = statement.execute(sql);
        } catch (SQLException e) {
            throw FEATURE_NOT_SUPPORTED.equals(e.getSQLState())
                    ? new SQLException("The server is a standby and cannot be written to", READ_ONLY, e)
                    : e;
        }
    }
}
