package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Who waits for locks: the sessions that have announced it by a shared lock on a wait key. Whoever only polls is not seen. */
public final class Waiters {

    private static final String WAITERS = """
            SELECT l.objid::bigint::bit(32)::int AS wait_key, a.application_name
            FROM pg_locks l JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = 1885826155 AND l.mode = 'ShareLock'
              AND l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND starts_with(a.application_name, ?::text)
            ORDER BY a.application_name
            """;

    private Waiters() {}

    /**
     * Looks for them by reading only.
     *
     * @param connection where to look
     * @param namespace whose replicas
     * @return the replicas' labels, by wait key
     * @throws SQLException if the database failed
     */
    public static Map<Integer, List<String>> of(Connection connection, String namespace) throws SQLException {
        String prefix = SessionSettings.prefix(namespace);
        try (PreparedStatement statement = connection.prepareStatement(WAITERS)) {
            statement.setString(1, prefix);
            Map<Integer, List<String>> waiters = new HashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    waiters.computeIfAbsent(row.getInt("wait_key"), key -> new ArrayList<>())
                            .add(row.getString("application_name").substring(prefix.length()));
                }
            }
            return waiters;
        }
    }
}
