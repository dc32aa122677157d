package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Whether what stands between driver and server gives the server's sessions to others between two transactions. */
public final class TransactionPooler {

    private static final int PROBES = 5;

    private TransactionPooler() {}

    /**
     * Looks. In transaction mode a pooler gives our server process away while we are silent: to a transaction that another
     * client keeps open, where it is seen there, or it is seen here that we have got another one. In session mode it is
     * ours. Blocks for some round trips, and for a second connection where there is a pooler.
     *
     * @param sessions what has opened the session
     * @param session the session, in autocommit mode
     * @return true if nothing that is bound to a session can rest on it
     * @throws SQLException if that failed
     */
    public static boolean standsBetween(SessionFactory sessions, Connection session) throws SQLException {
        if (!SessionFactory.isBehindPooler(session)) {
            return false;
        }
        try (Connection other = sessions.open(sessions.settings().timeouts().work())) {
            other.setAutoCommit(false);
            for (int i = 0; i < PROBES; i++) {
                int pid = pid(session);
                if (pid(other) == pid || pid(session) != pid) {
                    return true;
                }
                other.rollback();
            }
        }
        return false;
    }

    static int pid(Connection session) throws SQLException {
        try (Statement statement = session.createStatement();
                ResultSet row = statement.executeQuery("SELECT pg_backend_pid()")) {
            row.next();
            return row.getInt(1);
        }
    }
}
