package dev.pglock.lease;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** Pauses in the rows of the lease table, which claims of every strategy obey. */
public final class Pauses {

    /**
     * Pauses a name, seen or not; a fence that is never granted does no harm. Whoever is granted the lock at this moment was
     * first.
     */
    private static final String PAUSE = """
            WITH ask AS (
              SELECT ?::text AS namespace, ?::text AS name, ?::text AS reason
            ), before AS (
              SELECT l.paused FROM pglock_lease l JOIN ask USING (namespace, name)
            )
            INSERT INTO pglock_lease AS l (namespace, name, fence, acquired_at, expires_at, released_at, paused)
            SELECT ask.namespace, ask.name, pg_current_xact_id()::text::bigint, clock_timestamp(),
                   clock_timestamp() + interval '1 microsecond', clock_timestamp(), ask.reason
            FROM ask
            ON CONFLICT (namespace, name) DO UPDATE SET paused = excluded.paused
            RETURNING (SELECT before.paused IS NULL FROM before) IS NOT FALSE AS changed
            """;

    private static final String RESUME = """
            UPDATE pglock_lease l SET paused = NULL
            FROM (SELECT ?::text AS namespace, ?::text AS name) AS ask
            WHERE l.namespace = ask.namespace AND l.name = ask.name AND l.paused IS NOT NULL
            RETURNING true AS changed
            """;

    private Pauses() {}

    /**
     * Begins or ends a pause.
     *
     * @param connection where to write
     * @param table the table
     * @param namespace the namespace
     * @param name the lock's name
     * @param reason why; null ends it
     * @return whether that changed anything but the reason
     * @throws SQLException if the table is missing, or the database failed
     */
    public static boolean set(
            Connection connection, LeaseTable table, String namespace, String name, @Nullable String reason)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(table.in(reason == null ? RESUME : PAUSE))) {
            statement.setString(1, namespace);
            statement.setString(2, name);
            if (reason != null) {
                statement.setString(3, reason);
            }
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean("changed");
            }
        }
    }
}
