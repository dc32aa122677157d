package dev.pglock.sample.lab;

import dev.pglock.CompletedVersion;
import dev.pglock.LockInfo;
import dev.pglock.LockRegistry;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

/** Reads the locks from the database, several times a second, past every proxy, and takes none. */
final class LockWatch implements AutoCloseable {

    private static final long INTERVAL_MILLIS = 200;

    private final LockRegistry locks;

    private final JdbcClient jdbc;

    private final Board board;

    private final Predicate<String> isFrozen;

    private long quickestMillis = Long.MAX_VALUE;

    private final Thread thread = new Thread(this::watch, "lock-watch");

    LockWatch(LockRegistry locks, JdbcClient jdbc, Board board, Predicate<String> isFrozen) {
        this.locks = locks;
        this.jdbc = jdbc;
        this.board = board;
        this.isFrozen = isFrozen;
        this.thread.setDaemon(true);
        this.thread.start();
    }

    private void watch() {
        try {
            while (true) {
                look();
                Thread.sleep(INTERVAL_MILLIS);
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private void look() {
        try {
            readClock();
            Map<String, Long> ticks = ticks();
            List<LockView> views = this.locks.findAll().stream()
                    .map(info -> view(info, ticks.get(info.name())))
                    .toList();
            this.board.read(views, this.isFrozen);
            this.board.databaseAnswers(true);
        } catch (RuntimeException ex) {
            // Whatever it is: a page that goes on with old rows and does not say so would be worse.
            this.board.databaseAnswers(false);
        }
    }

    private void readClock() {
        long before = System.currentTimeMillis();
        Instant server = this.jdbc
                .sql("SELECT clock_timestamp()")
                .query((row, number) -> row.getTimestamp(1).toInstant())
                .single();
        long after = System.currentTimeMillis();
        // A slow answer says little of when the clock was read.
        this.quickestMillis = Math.min(this.quickestMillis, after - before);
        if (after - before <= 2 * this.quickestMillis + 5) {
            this.board.offset(server.toEpochMilli() - (before + after) / 2);
        }
    }

    private Map<String, Long> ticks() {
        Map<String, Long> ticks = new HashMap<>();
        this.jdbc.sql("""
                        SELECT name, (SELECT max(t.value::timestamptz) FROM jsonb_each_text(ticks) AS t) AS tick
                        FROM pglock_lease WHERE namespace = :namespace AND ticks <> '{}'
                        """).param("namespace", Lab.NAMESPACE).query(row -> {
            ticks.put(row.getString("name"), row.getTimestamp("tick").getTime());
        });
        return ticks;
    }

    private static LockView view(LockInfo info, @Nullable Long tick) {
        return new LockView(
                info.name(),
                info.strategy().name(),
                info.state().name(),
                info.holder(),
                info.fence(),
                millis(info.acquiredAt()),
                millis(info.expiresAt()),
                info.data(),
                tick,
                info.lastRun() == null ? null : info.lastRun().holder(),
                info.lastRun() == null ? null : millis(info.lastRun().finishedAt()),
                info.lastRun() == null ? null : info.lastRun().outcome().name(),
                info.completed().stream().map(CompletedVersion::version).toList(),
                info.paused(),
                info.waiting());
    }

    private static @Nullable Long millis(@Nullable Instant instant) {
        return instant == null ? null : instant.toEpochMilli();
    }

    @Override
    public void close() {
        this.thread.interrupt();
    }
}
