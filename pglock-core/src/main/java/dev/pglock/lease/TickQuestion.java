package dev.pglock.lease;

import dev.pglock.Tick;
import dev.pglock.store.ServerClock;
import dev.pglock.store.TickGuard;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.OffsetDateTime;
import org.jspecify.annotations.Nullable;

/** How a tick is put into statements, for both strategies. Thread-safe. */
public final class TickQuestion {

    private static final String SERVER_TIME = "SELECT clock_timestamp() AS now";

    private final ServerClock clock = new ServerClock();

    /** Creates one that does not know the server's time yet. */
    public TickQuestion() {}

    /**
     * Reads a tick. Asks for the server's time if that is needed and no answer has told it yet: once in a replica's life.
     *
     * @param connection to ask on
     * @param tick the tick; null: none
     * @return its guard
     * @throws SQLException if the server did not tell its time
     */
    public TickGuard guard(Connection connection, @Nullable Tick tick) throws SQLException {
        if (TickGuard.needsServerTime(tick) && clock.now() == null) {
            long sentAt = System.nanoTime();
            try (PreparedStatement statement = connection.prepareStatement(SERVER_TIME);
                    ResultSet row = statement.executeQuery()) {
                if (row.next()) {
                    learn(sentAt, row);
                }
            }
        }
        return TickGuard.of(tick, clock);
    }

    /**
     * Learns what time it is from the column {@code now} of an answer.
     *
     * @param sentAt {@link System#nanoTime()} before the question was sent
     * @param row the answer
     * @throws SQLException if it has no such column
     */
    public void learn(long sentAt, ResultSet row) throws SQLException {
        OffsetDateTime now = row.getObject("now", OffsetDateTime.class);
        if (now != null) {
            clock.learn(sentAt, now.toInstant(), System.nanoTime());
        }
    }

    /**
     * Whether a tick that was told to be done was not the one that the call meant, as the answer shows: a clock was set, or
     * the machine was suspended.
     *
     * @param tick the tick
     * @param asked what was asked
     * @return true if asking again gives another answer
     */
    public boolean wasMistaken(@Nullable Tick tick, TickGuard asked) {
        return TickGuard.needsServerTime(tick) && !TickGuard.of(tick, clock).equals(asked);
    }

    /**
     * Sets trigger and tick, in this order.
     *
     * @param statement where
     * @param before the index of the parameter before
     * @param guard what
     * @return the index of the last one
     * @throws SQLException if the driver refuses them
     */
    public static int setTick(PreparedStatement statement, int before, TickGuard guard) throws SQLException {
        statement.setString(before + 1, guard.trigger());
        // As text: for a null without a type of its own the driver makes more round trips.
        statement.setString(
                before + 2, guard.tick() == null ? null : guard.tick().toString());
        return before + 2;
    }

    /**
     * Sets reach and slack, in this order.
     *
     * @param statement where
     * @param before the index of the parameter before
     * @param guard what
     * @return the index of the last one
     * @throws SQLException if the driver refuses them
     */
    public static int setBounds(PreparedStatement statement, int before, TickGuard guard) throws SQLException {
        setSeconds(statement, before + 1, guard.reach());
        setSeconds(statement, before + 2, guard.slack());
        return before + 2;
    }

    /**
     * Sets the period.
     *
     * @param statement where
     * @param before the index of the parameter before
     * @param guard what
     * @return the index of the last one
     * @throws SQLException if the driver refuses it
     */
    public static int setPeriod(PreparedStatement statement, int before, TickGuard guard) throws SQLException {
        setSeconds(statement, before + 1, guard.period());
        return before + 1;
    }

    private static void setSeconds(PreparedStatement statement, int i, @Nullable Duration duration)
            throws SQLException {
        if (duration == null) {
            statement.setNull(i, Types.DOUBLE);
        } else {
            statement.setDouble(i, duration.toNanos() / 1e9);
        }
    }
}
