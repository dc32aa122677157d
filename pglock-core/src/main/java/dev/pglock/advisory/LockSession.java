package dev.pglock.advisory;

import dev.pglock.ConnectionWork;
import dev.pglock.jdbc.Conflicts;
import dev.pglock.jdbc.PlatformThread;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.jdbc.Telling;
import dev.pglock.store.WakeUps;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session that carries advisory locks. Statements take turns on it, in order. When it ends, for whatever reason,
 * everything it held is lost, finally; a new one is a new session with nothing.
 *
 * <pre>
 *   OPEN ──close──► CLOSING ──last key given back──► ENDED
 *    └── I/O error, class 08, 57P0x, standby ──────────►┘
 * </pre>
 */
final class LockSession {

    private static final Logger log = LoggerFactory.getLogger(LockSession.class);
    private static final String NO_LIMIT = "0";

    private enum Phase {
        OPEN,
        CLOSING,
        ENDED
    }

    private final Connection connection;
    private final int pid;
    private final SessionFactory sessions;
    private final Duration lease;
    private final ReentrantLock turn = new ReentrantLock(true);
    private final Telling telling = new Telling();

    /** By key. Changed by whoever has the turn, and by a loss; read by anybody. */
    private final Map<Long, Held> held = new ConcurrentHashMap<>();

    /** Keys of ticks, with the {@link System#nanoTime()} until which they are kept. Changed and read like those above. */
    private final Map<Long, Long> ticks = new ConcurrentHashMap<>();

    /** {@link System#nanoTime()} at which the budget of whoever has the turn is used up. */
    private long turnEnds;

    private volatile Phase phase = Phase.OPEN;
    private volatile long usedAt = System.nanoTime();

    /**
     * Takes over a connection.
     *
     * @param pid its server process
     * @param sessions what has set it up
     * @param lease how long the server lets it be silent while a tenure lasts
     */
    LockSession(Connection connection, int pid, SessionFactory sessions, Duration lease) {
        this.connection = connection;
        this.pid = pid;
        this.sessions = sessions;
        this.lease = lease;
    }

    /** Work on the session. */
    @FunctionalInterface
    interface Work<T extends @Nullable Object> {

        T on(Connection connection) throws SQLException;
    }

    int pid() {
        return pid;
    }

    /**
     * Does work in turn, away from a virtual thread. The caller's interrupt neither stops it nor gets lost. An I/O error or
     * the end of the session ends it here as well; any other error leaves it, and all that it holds, as it was.
     */
    <T extends @Nullable Object> T ask(Duration budget, Work<T> work) throws SQLException {
        long until = System.nanoTime() + budget.toNanos();
        boolean interrupted = Thread.interrupted();
        try {
            interrupted |= awaitTurn(until);
            try {
                return PlatformThread.call(() -> askInTurn(until, work));
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
                throw new SQLTimeoutException("The lock session was busy for too long");
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
    }

    private <T extends @Nullable Object> T askInTurn(long until, Work<T> work) throws SQLException {
        if (hasEnded()) {
            throw new SQLException("The lock session has ended", "08003");
        }
        try {
            // Whoever has come late must not end what others hold, for an answer that is only as late as he.
            long least =
                    held.isEmpty() ? 1 : sessions.settings().timeouts().answer().toMillis();
            long millis = Math.max(least, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()));
            connection.setNetworkTimeout(Runnable::run, (int) Math.min(Integer.MAX_VALUE, millis));
            turnEnds = until;
            return work.on(connection);
        } catch (SQLException e) {
            SqlStates.Kind kind = SqlStates.kindOf(e);
            if (kind == SqlStates.Kind.BROKEN || kind == SqlStates.Kind.READ_ONLY || connection.isClosed()) {
                end();
            }
            throw e;
        }
    }

    /**
     * In turn: does it again where it failed by the bad luck of a moment. To begin anew with another session, as others do,
     * would be to lose everything. An attempt that fails must leave nothing in the way of the next.
     */
    <T extends @Nullable Object> T persist(Work<T> work) throws SQLException {
        Conflicts conflicts = new Conflicts();
        while (true) {
            try {
                return work.on(connection);
            } catch (SQLException e) {
                if (System.nanoTime() - turnEnds >= 0 || !conflicts.mayPass(e)) {
                    throw e;
                }
            }
        }
    }

    /**
     * Leaves the session to work, for as long as that takes. What it has not committed when it returns is committed; the
     * session's end is the end of both.
     */
    <T extends @Nullable Object> T work(ConnectionWork<T> work) throws SQLException {
        turn.lock();
        try {
            if (hasEnded()) {
                throw new SQLException("The lock session has ended", "08003");
            }
            String searchPath = leaveToWork();
            boolean done = false;
            try {
                T result = work.on(connection);
                commit();
                done = true;
                return result;
            } finally {
                takeBack(done, searchPath);
            }
        } finally {
            turn.unlock();
        }
    }

    private @Nullable String leaveToWork() throws SQLException {
        return PlatformThread.<@Nullable String>call(() -> SessionFactory.leaveToWork(connection, pid));
    }

    private void commit() throws SQLException {
        boolean ignored = PlatformThread.call(() -> {
            if (!connection.getAutoCommit()) {
                connection.commit();
            }
            return true;
        });
    }

    private void takeBack(boolean done, @Nullable String searchPath) {
        try {
            boolean ignored = PlatformThread.call(() -> {
                if (!done && !connection.getAutoCommit()) {
                    connection.rollback();
                }
                if (!sessions.takeBack(connection, pid, searchPath)) {
                    throw new SQLException("The lock session has become another one", "08003");
                }
                watch();
                return true;
            });
        } catch (SQLException e) {
            log.debug("A lock session cannot be used any more after the work on it", e);
            end();
        }
    }

    // ---- what it holds; to be changed in turn only

    @Nullable
    Held held(long key) {
        return held.get(key);
    }

    /** What the session holds, by key, as of now. */
    Map<Long, Held> holdings() {
        return Map.copyOf(held);
    }

    /** How many keys, those of ticks included. */
    int size() {
        return held.size() + ticks.size();
    }

    /** How many of them are those of ticks. */
    int ticksKept() {
        return ticks.size();
    }

    boolean isTick(long key) {
        return ticks.containsKey(key);
    }

    void put(long key, Held tenure) {
        held.put(key, tenure);
    }

    /** The server says that the key is not held any more. */
    void forget(long key) {
        Held tenure = held.remove(key);
        if (tenure != null) {
            endTick(tenure);
        }
    }

    /** Until when the key of a tick is kept; null: it is not. */
    @Nullable
    Long tick(long key) {
        return ticks.get(key);
    }

    /** Keeps the key of a tick, which the session holds, until then. */
    void keepTick(long key, long until) {
        ticks.put(key, until);
    }

    /** The tenure is over: if the next tick depends on that, its key is kept from now on for as long as that takes. */
    void endTick(Held tenure) {
        TickKey tick = tenure.tick();
        if (tick != null && tick.afterEnd()) {
            ticks.computeIfPresent(tick.key(), (key, until) -> tick.keptAfter(System.nanoTime()));
        }
    }

    /** The row remembers the tick of that tenure: its key, if it was taken before there was a row, need not. */
    void dropTick(Held tenure) {
        TickKey tick = tenure.tick();
        if (tick != null && tick.afterEnd()) {
            ticks.computeIfPresent(tick.key(), (key, until) -> System.nanoTime());
        }
    }

    /**
     * A tenure was lost although the session lives: its key is kept a little longer, for the body to end, and then given
     * back by whoever has the turn. No longer than the server bears silence, since nobody speaks for it any more. Never
     * blocks: needs no turn.
     */
    void abandon(long key, long fence) {
        held.computeIfPresent(key, (k, tenure) -> {
            if (tenure.fence() != fence || tenure.isKept()) {
                return tenure;
            }
            endTick(tenure);
            return tenure.lost(lease.dividedBy(3));
        });
    }

    /** How long it takes until something need not be kept any more; null: nothing is kept. */
    @Nullable
    Duration leastKept(long now) {
        return kept(now).min(Comparator.naturalOrder()).orElse(null);
    }

    private Stream<Duration> kept(long now) {
        return Stream.concat(
                held.values().stream().filter(Held::isKept).map(tenure -> tenure.left(now)),
                ticks.values().stream().map(until -> Duration.ofNanos(Math.max(0, until - now))));
    }

    /** Gives a key back. False: it was not held any more. */
    boolean unlock(long key) throws SQLException {
        Held tenure = held.remove(key);
        boolean done = false;
        try {
            boolean unlocked = telling.tellIfPossible(form -> {
                String sql = form.apply(AdvisorySql.UNLOCK);
                // A key is given back even if the transaction fails in its end: the second time there is none.
                return unlock(key, sql) || !sql.equals(AdvisorySql.UNLOCK);
            });
            done = true;
            return unlocked;
        } finally {
            if (!done && tenure != null) {
                held.put(key, tenure.over());
            }
            endIfClosing();
        }
    }

    /**
     * A claim has failed, and so has giving back what it may have been granted. Whoever speaks next does it, before the key is
     * claimed once more, which would stack. Where nothing else is held nobody may speak for long, and nothing is lost with
     * the session.
     */
    void leaveBehind(String name, long key, @Nullable TickKey tick) {
        if (held.isEmpty() && ticks.isEmpty()) {
            end();
            return;
        }
        held.put(key, Held.leftOver(name));
        if (tick != null) {
            ticks.putIfAbsent(tick.key(), System.nanoTime());
        }
    }

    private boolean unlock(long key, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setLong(1, key);
            statement.setString(2, greatestSilence());
            statement.setInt(3, WakeUps.waitKey(key));
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean("unlocked");
            }
        }
    }

    /** Keeps a key whose tenure has ended for the rest of its minimum hold. */
    void keep(long key, Held kept) throws SQLException {
        held.put(key, kept);
        watch();
    }

    private void watch() throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.WATCH)) {
            statement.setString(1, greatestSilence());
            boolean ignored = statement.execute();
        }
    }

    /** Gives back what need not be kept any more. */
    void unlockWhatIsOver() throws SQLException {
        long now = System.nanoTime();
        List<Long> over = held.entrySet().stream()
                .filter(entry -> entry.getValue().isOver(now))
                .map(Map.Entry::getKey)
                .toList();
        for (Long key : over) {
            boolean ignored = unlock(key);
        }
        List<Long> past = ticks.entrySet().stream()
                .filter(entry -> now - entry.getValue() >= 0)
                .map(Map.Entry::getKey)
                .toList();
        for (Long key : past) {
            forgetTick(key);
        }
    }

    private void forgetTick(Long key) throws SQLException {
        Long until = ticks.remove(key);
        boolean done = false;
        try {
            boolean ignored = unlock(key);
            done = true;
        } finally {
            if (!done && until != null) {
                ticks.put(key, until);
            }
        }
    }

    /** How long the server lets the session be silent when it has been granted something. */
    String leaseMillis() {
        return Long.toString(lease.toMillis());
    }

    /**
     * The same for what it holds now: the lease while a tenure lasts, because heartbeats come; without one nobody speaks
     * until the last minimum hold or tick is over; and a session that holds nothing is in nobody's way.
     */
    private String greatestSilence() {
        long now = System.nanoTime();
        if (held.isEmpty() && ticks.isEmpty()) {
            return NO_LIMIT;
        }
        if (held.values().stream().anyMatch(tenure -> !tenure.isKept())) {
            return leaseMillis();
        }
        Duration longest = kept(now).max(Comparator.naturalOrder()).orElse(Duration.ZERO);
        return Long.toString(Math.min(Integer.MAX_VALUE, lease.plus(longest).toMillis()));
    }

    // ---- its end

    void touch() {
        usedAt = System.nanoTime();
    }

    boolean hasEnded() {
        return phase == Phase.ENDED;
    }

    /** Ends the session, and with it everything it holds. Never blocks for the server. */
    void end() {
        phase = Phase.ENDED;
        try {
            connection.abort(Runnable::run);
        } catch (SQLException e) {
            log.debug("A lock session could not be closed properly", e);
        }
    }

    /** Closes the session if it holds nothing and nobody has claimed or held anything for that long. */
    void closeIfIdle(Duration idle) {
        if (turn.tryLock()) {
            try {
                if (held.isEmpty() && ticks.isEmpty() && System.nanoTime() - usedAt >= idle.toNanos()) {
                    close();
                }
            } finally {
                turn.unlock();
            }
        }
    }

    /**
     * Closes the session as soon as it holds nothing. The body under a lock may still run: until it has given its lock back
     * the session stays, silent, and the server ends it when it has been silent for the lease.
     */
    void close() {
        if (phase == Phase.OPEN) {
            phase = Phase.CLOSING;
        }
        endIfClosing();
    }

    private void endIfClosing() {
        if (phase != Phase.CLOSING || !held.isEmpty()) {
            return;
        }
        phase = Phase.ENDED;
        try {
            connection.close();
        } catch (SQLException e) {
            log.debug("A lock session could not be closed properly", e);
        }
    }

    /** The server's time in a column that is never null. */
    static Instant instant(ResultSet row, String column) throws SQLException {
        OffsetDateTime value = row.getObject(column, OffsetDateTime.class);
        if (value == null) {
            throw new SQLException("Column " + column + " must have a value");
        }
        return value.toInstant();
    }
}
