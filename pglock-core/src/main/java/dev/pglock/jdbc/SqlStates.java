package dev.pglock.jdbc;

import java.io.IOException;
import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLRecoverableException;
import org.jspecify.annotations.Nullable;

/**
 * What a failure means, by its SQLSTATE.
 *
 * @see <a href="https://www.postgresql.org/docs/current/errcodes-appendix.html">PostgreSQL error codes</a>
 */
public final class SqlStates {

    /** What can be meant. */
    public enum Kind {
        /** The session has ended, or nobody can be reached. What was under way may have been carried out. */
        BROKEN,
        /** The session cannot write: the server is a standby, or was one when the session began. */
        READ_ONLY,
        /** The session has lost the statements that the driver believes to be prepared: a pooler in between. */
        STALE_STATEMENT,
        /** Our own {@code lock_timeout} or {@code statement_timeout}. */
        BUSY,
        /** A serialization failure or a deadlock: the same statement may succeed if it is tried again. */
        CONFLICT,
        /** The server takes no more sessions, from this role or at all. */
        TOO_MANY_CONNECTIONS,
        /** The table is not there. */
        MISSING_TABLE,
        /** The role may not do this. */
        MISSING_PRIVILEGE,
        /** Anything else. */
        OTHER
    }

    private SqlStates() {}

    /**
     * Reads a failure.
     *
     * @param failure what the driver or a pool threw
     * @return what it means
     */
    public static Kind kindOf(SQLException failure) {
        String state = stateOf(failure);
        if (state == null) {
            return isConnectionFailure(failure) ? Kind.BROKEN : Kind.OTHER;
        }
        return switch (state) {
            // Shut down by an administrator, crashed, starting up, idle session or transaction ended by its timeout
            case "57P01", "57P02", "57P03", "57P05", "25P03", "25P04" -> Kind.BROKEN;
            case "25006" -> Kind.READ_ONLY;
            case "26000", "42P05" -> Kind.STALE_STATEMENT;
            case "55P03", "57014" -> Kind.BUSY;
            case "40001", "40P01" -> Kind.CONFLICT;
            case "53300" -> Kind.TOO_MANY_CONNECTIONS;
            case "42P01" -> Kind.MISSING_TABLE;
            case "42501" -> Kind.MISSING_PRIVILEGE;
            default -> state.startsWith("08") || isConnectionFailure(failure) ? Kind.BROKEN : Kind.OTHER;
        };
    }

    private static boolean isConnectionFailure(SQLException failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof IOException
                    || t instanceof SQLRecoverableException
                    || t instanceof SQLNonTransientConnectionException) {
                return true;
            }
        }
        return false;
    }

    /** A pool reports a failure to connect as one of its own, with the driver's as the cause. */
    private static @Nullable String stateOf(SQLException failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof SQLException sql && sql.getSQLState() != null) {
                return sql.getSQLState();
            }
        }
        return null;
    }
}
