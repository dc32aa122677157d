package dev.pglock.lease;

import dev.pglock.CompletedVersion;
import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockState;
import dev.pglock.LockStrategy;
import dev.pglock.RunOutcome;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the rows of the lease table tell to somebody who only looks, whatever strategy their names are locked by. */
public final class LeaseRows {

    /** One name, or with NULL all of the namespace. */
    private static final String FIND = """
            WITH moment AS MATERIALIZED (
              SELECT clock_timestamp() AS now
            ), looked AS (
              SELECT l.*, moment.now,
                     CASE WHEN l.holder IS NOT NULL AND l.expires_at > moment.now THEN 'HELD'
                          WHEN l.paused IS NOT NULL THEN 'PAUSED'
                          WHEN l.hold_until > moment.now THEN 'HOLD'
                          WHEN l.holder IS NOT NULL THEN 'EXPIRED'
                          ELSE 'FREE' END AS state
              FROM pglock_lease l, moment
              WHERE l.namespace = ?::text AND l.name = coalesce(?::text, l.name)
            )
            SELECT name, state, CASE WHEN holder IS NOT NULL THEN holder_label END AS holder_label, fence, acquired_at,
                   CASE WHEN state = 'HOLD' THEN hold_until WHEN holder IS NOT NULL THEN expires_at END AS until,
                   data, paused, last_holder, last_started_at, last_finished_at, last_outcome, last_error, completed,
                   ARRAY(SELECT extract(epoch FROM (completions -> v ->> 'at')::timestamptz)::float8
                         FROM unnest(completed) WITH ORDINALITY AS c (v, i) ORDER BY i) AS completed_at,
                   ARRAY(SELECT completions -> v ->> 'by'
                         FROM unnest(completed) WITH ORDINALITY AS c (v, i) ORDER BY i) AS completed_by,
                   ARRAY(SELECT (completions -> v ->> 'seconds')::float8
                         FROM unnest(completed) WITH ORDINALITY AS c (v, i) ORDER BY i) AS completed_in
            FROM looked
            ORDER BY name COLLATE "C"
            """;

    private final String find;

    /**
     * Looks into a table.
     *
     * @param table the table
     */
    public LeaseRows(LeaseTable table) {
        find = table.in(FIND);
    }

    /**
     * Reads rows.
     *
     * @param connection where to read
     * @param namespace the namespace
     * @param name the lock's name; null: all of the namespace
     * @return what they tell, by name
     * @throws SQLException if the table is missing, or the database failed
     */
    public List<LockInfo> read(Connection connection, String namespace, @Nullable String name) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(find)) {
            statement.setString(1, namespace);
            statement.setString(2, name);
            List<LockInfo> found = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    found.add(info(row));
                }
            }
            return found;
        }
    }

    private static LockInfo info(ResultSet row) throws SQLException {
        return new LockInfo(
                row.getString("name"),
                LockStrategy.LEASE,
                LockState.valueOf(row.getString("state")),
                row.getString("holder_label"),
                row.getLong("fence"),
                instant(row, "acquired_at"),
                instant(row, "until"),
                row.getString("data"),
                lastRun(row),
                completed(row),
                row.getString("paused"),
                List.of());
    }

    private static @Nullable LastRun lastRun(ResultSet row) throws SQLException {
        Instant startedAt = instant(row, "last_started_at");
        Instant finishedAt = instant(row, "last_finished_at");
        RunOutcome outcome = outcome(row.getString("last_outcome"));
        return startedAt == null || finishedAt == null || outcome == null
                ? null
                : new LastRun(
                        row.getString("last_holder"), startedAt, finishedAt, outcome, row.getString("last_error"));
    }

    private static List<CompletedVersion> completed(ResultSet row) throws SQLException {
        String[] versions = (String[]) row.getArray("completed").getArray();
        if (versions.length == 0) {
            return List.of();
        }
        @Nullable Double[] at = (Double[]) row.getArray("completed_at").getArray();
        @Nullable String[] by = (String[]) row.getArray("completed_by").getArray();
        @Nullable Double[] seconds = (Double[]) row.getArray("completed_in").getArray();
        List<CompletedVersion> completed = new ArrayList<>(versions.length);
        for (int i = 0; i < versions.length; i++) {
            Duration since1970 = duration(at[i]);
            completed.add(new CompletedVersion(
                    versions[i],
                    since1970 == null ? null : Instant.EPOCH.plus(since1970),
                    by[i],
                    duration(seconds[i])));
        }
        return List.copyOf(completed);
    }

    /** To the microsecond, which is what the server tells. */
    private static @Nullable Duration duration(@Nullable Double seconds) {
        return seconds == null ? null : Duration.of(Math.round(seconds * 1e6), ChronoUnit.MICROS);
    }

    /** A later version may know more of them. */
    private static @Nullable RunOutcome outcome(@Nullable String name) {
        return Arrays.stream(RunOutcome.values())
                .filter(outcome -> outcome.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    /** By way of the offset that comes with it: no time zone of JVM or session has a say. */
    static @Nullable Instant instant(ResultSet row, String column) throws SQLException {
        OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
        return time == null ? null : time.toInstant();
    }
}
