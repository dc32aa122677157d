package dev.pglock.advisory;

import dev.pglock.jdbc.SqlStates;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one session on which all advisory locks of a replica live. Statements take turns on it, in order. When it ends, for
 * whatever reason, everything it held is lost, finally; a new one is a new session with nothing.
 */
final class LockSession {

    private static final Logger log = LoggerFactory.getLogger(LockSession.class);

    private final Connection connection;
    private final ReentrantLock turn = new ReentrantLock(true);

    /** By key. Changed only by whoever has the turn, read by anybody. */
    private final Map<Long, Held> held = new ConcurrentHashMap<>();

    private volatile boolean ended;
    private volatile long usedAt = System.nanoTime();

    LockSession(Connection connection) {
        this.connection = connection;
    }

    /**
     * A key that the session holds.
     *
     * @param lingersUntil {@link System#nanoTime()} until which it is kept after its release, for its minimum hold; null
     *     while its tenure lasts
     */
    record Held(
            String name,
            long fence,
            Instant acquiredAt,
            @Nullable Long lingersUntil) {

        Held lingering(long until) {
            return new Held(name, fence, acquiredAt, until);
        }

        boolean isOver(long now) {
            return lingersUntil != null && now - lingersUntil >= 0;
        }
    }

    /** Work on the session. */
    @FunctionalInterface
    interface Work<T extends @Nullable Object> {

        T on(Connection connection, Map<Long, Held> held) throws SQLException;
    }

    /**
     * Does work in turn. The caller's interrupt neither stops it nor gets lost. An I/O error or the end of the session ends
     * it here as well; any other error leaves it, and all that it holds, as it was.
     */
    <T extends @Nullable Object> T ask(Duration budget, Work<T> work) throws SQLException {
        long until = System.nanoTime() + budget.toNanos();
        boolean interrupted = Thread.interrupted();
        try {
            interrupted |= awaitTurn(until);
            try {
                return askInTurn(until, work);
            } finally {
                turn.unlock();
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Returns whether it was interrupted meanwhile. */
    private boolean awaitTurn(long until) throws SQLException {
        boolean interrupted = false;
        while (true) {
            try {
                if (turn.tryLock(Math.max(0, until - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                    return interrupted;
                }
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
                throw new SQLTimeoutException("The lock session was busy for too long", "57014");
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
    }

    private <T extends @Nullable Object> T askInTurn(long until, Work<T> work) throws SQLException {
        if (ended) {
            throw new SQLException("The lock session has ended", "08003");
        }
        try {
            long millis = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
            if (!held.isEmpty()) {
                usedAt = System.nanoTime();
            }
            connection.setNetworkTimeout(Runnable::run, (int) Math.max(1, Math.min(Integer.MAX_VALUE, millis)));
            return work.on(connection, held);
        } catch (SQLException e) {
            SqlStates.Kind kind = SqlStates.kindOf(e);
            if (kind == SqlStates.Kind.BROKEN || kind == SqlStates.Kind.READ_ONLY || connection.isClosed()) {
                end();
            }
            throw e;
        }
    }

    boolean hasEnded() {
        return ended;
    }

    /** What the session holds, by key, as of now. */
    Map<Long, Held> holdings() {
        return Map.copyOf(held);
    }

    /** Ends the session, and with it everything it holds. Never blocks for the server. */
    void end() {
        ended = true;
        try {
            connection.abort(Runnable::run);
        } catch (SQLException e) {
            log.debug("The lock session could not be closed properly", e);
        }
    }

    /** Closes the session if it holds nothing and has not been asked anything but housekeeping for that long. */
    void closeIfIdle(Duration idle) {
        if (turn.tryLock()) {
            try {
                if (held.isEmpty() && System.nanoTime() - usedAt >= idle.toNanos()) {
                    close();
                }
            } finally {
                turn.unlock();
            }
        }
    }

    /**
     * Closes the session if it holds nothing. Otherwise it is left as it is, silent: the body under a lock may still run,
     * and the server frees the lock when the session has been silent for the lease.
     */
    void close() {
        ended = true;
        if (!held.isEmpty()) {
            return;
        }
        try {
            connection.close();
        } catch (SQLException e) {
            log.debug("The lock session could not be closed properly", e);
        }
    }
}
