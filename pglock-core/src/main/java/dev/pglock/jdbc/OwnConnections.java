package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A handful of connections of our own. They are opened when they are needed, on the thread that needs them, and closed
 * when nobody has needed them for some seconds.
 *
 * <p>This is no general pool because it owes its borrowers what those do not give: a lane for the heartbeat that no other
 * borrower can take, a way to a connection that is certainly fresh after one was broken, an end to the waiting that every
 * borrower sets himself, the server's own words at once when it cannot be reached, and no validation query, which would
 * double the round trips of a claim. A connection that died while it was idle is found by its first statement, and
 * replaced.
 */
public final class OwnConnections extends RecoveringSource {

    private static final Logger log = LoggerFactory.getLogger(OwnConnections.class);

    /** So that a session outlives neither a moved primary nor a revoked right for long. */
    private static final long GREATEST_AGE = TimeUnit.MINUTES.toNanos(30);

    private final SessionFactory sessions;
    private final Semaphore work;
    private final Semaphore heartbeat;
    private final long idleNanos;

    private final ReentrantLock guard = new ReentrantLock();
    private final Deque<Session> idle = new ArrayDeque<>();
    private boolean reaping;
    private boolean closed;

    private final ScheduledThreadPoolExecutor reaper;

    /**
     * Creates the connections' place. Opens nothing.
     *
     * @param sessions opens them
     * @param size how many at most; from 2 on one of them is kept for the heartbeat, with 1 everybody shares it
     */
    public OwnConnections(SessionFactory sessions, int size) {
        if (size < 1) {
            throw new IllegalArgumentException("There must be at least 1 connection, not " + size);
        }
        this.sessions = sessions;
        this.work = new Semaphore(Math.max(1, size - 1), true);
        this.heartbeat = size == 1 ? work : new Semaphore(1, true);
        this.idleNanos = sessions.settings().timeouts().idle().toNanos();
        this.reaper = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "pglock-connections");
            thread.setDaemon(true);
            return thread;
        });
        reaper.setKeepAliveTime(1, TimeUnit.SECONDS);
        reaper.allowCoreThreadTimeOut(true);
        reaper.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /** A physical connection, with the {@link System#nanoTime()} of its opening and of its last use. */
    private record Session(Connection connection, long openedAt, long usedAt) {

        boolean isOlderThan(long age, long now) {
            return now - openedAt > age;
        }
    }

    @Override
    Loan lend(Lane lane, boolean fresh, Budget budget) throws SQLException {
        Semaphore permits = lane == Lane.HEARTBEAT ? heartbeat : work;
        awaitPermit(permits, budget);
        boolean lent = false;
        try {
            refuseIfClosed();
            Session session = fresh ? null : takeIdle();
            if (session == null) {
                if (fresh) {
                    // What broke one of them has most likely broken all.
                    closeIdle(0);
                }
                long now = System.nanoTime();
                session = new Session(sessions.open(budget), now, now);
            }
            session.connection().setNetworkTimeout(SessionFactory.DIRECT, budget.millisLeft());
            lent = true;
            return new OwnLoan(session, permits);
        } finally {
            if (!lent) {
                permits.release();
            }
        }
    }

    private void refuseIfClosed() throws SQLException {
        guard.lock();
        try {
            if (closed) {
                throw new SQLException("The connections of this registry have been closed");
            }
        } finally {
            guard.unlock();
        }
    }

    /** Interrupts do not end it, the budget does: a release that waits here must not be lost to an interrupted body. */
    private static void awaitPermit(Semaphore permits, Budget budget) throws SQLException {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (permits.tryAcquire(budget.nanosLeft(), TimeUnit.NANOSECONDS)) {
                        return;
                    }
                    throw new SQLTransientConnectionException(
                            "No own connection became free in time: all of them are in use (pglock.datasource.pool-size)");
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private final class OwnLoan implements Loan {

        private final Session session;
        private final Semaphore permits;

        OwnLoan(Session session, Semaphore permits) {
            this.session = session;
            this.permits = permits;
        }

        @Override
        public Connection connection() {
            return session.connection();
        }

        @Override
        public void giveBack() {
            putIdle(session);
            permits.release();
        }

        @Override
        public void discard(boolean unusable) {
            if (unusable || isClosed(session.connection())) {
                abort(session.connection());
            } else {
                putIdle(session);
            }
            permits.release();
        }
    }

    /** The one that was used last, so that the others get the chance to be idle for long enough. */
    private @Nullable Session takeIdle() {
        guard.lock();
        try {
            return idle.pollFirst();
        } finally {
            guard.unlock();
        }
    }

    private void putIdle(Session session) {
        long now = System.nanoTime();
        guard.lock();
        try {
            if (!closed && !session.isOlderThan(GREATEST_AGE, now)) {
                idle.addFirst(new Session(session.connection(), session.openedAt(), now));
                planReaping(idleNanos);
                return;
            }
        } finally {
            guard.unlock();
        }
        closeQuietly(session.connection());
    }

    /** To be called under the guard. */
    private void planReaping(long nanos) {
        if (!reaping && !closed) {
            reaping = true;
            var ignored = reaper.schedule(this::reap, nanos, TimeUnit.NANOSECONDS);
        }
    }

    private void reap() {
        closeIdle(idleNanos);
        guard.lock();
        try {
            reaping = false;
            Session eldest = idle.peekLast();
            if (eldest != null) {
                planReaping(Math.max(0, idleNanos - (System.nanoTime() - eldest.usedAt())));
            }
        } finally {
            guard.unlock();
        }
    }

    private void closeIdle(long idleFor) {
        long now = System.nanoTime();
        List<Session> leaving = new ArrayList<>();
        guard.lock();
        try {
            Iterator<Session> sessions = idle.iterator();
            while (sessions.hasNext()) {
                Session session = sessions.next();
                if (now - session.usedAt() >= idleFor) {
                    sessions.remove();
                    leaving.add(session);
                }
            }
        } finally {
            guard.unlock();
        }
        leaving.forEach(session -> closeQuietly(session.connection()));
    }

    @Override
    public void close() {
        guard.lock();
        try {
            closed = true;
        } finally {
            guard.unlock();
        }
        reaper.shutdown();
        closeIdle(0);
    }

    private static boolean isClosed(Connection connection) {
        try {
            return connection.isClosed();
        } catch (SQLException e) {
            return true;
        }
    }

    private static void closeQuietly(Connection connection) {
        try {
            connection.close();
        } catch (SQLException e) {
            log.debug("A connection could not be closed properly", e);
        }
    }

    private static void abort(Connection connection) {
        try {
            connection.abort(SessionFactory.DIRECT);
        } catch (SQLException e) {
            log.debug("A broken connection could not be aborted", e);
        }
    }
}
