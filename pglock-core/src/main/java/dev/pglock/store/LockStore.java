package dev.pglock.store;

import dev.pglock.ConnectionWork;
import dev.pglock.LockInfo;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * How locks are kept, for one replica. A store knows its namespace, its own holder id and label; it keeps no state of
 * the locks that it granted, and it starts no thread. The engine has decided inside this process before it asks: a store
 * is never asked to claim a name whose tenure in this process has not ended. Thread-safe; every method blocks for its
 * statement and is bounded in time.
 *
 * <p>All methods throw {@link LockStorageException} when the database failed and the answer is not known.
 */
public interface LockStore extends AutoCloseable {

    /** For whom a renewal is made: heartbeats go by a connection of their own that nobody else can keep from them. */
    enum Caller {
        /** The heartbeat. */
        HEARTBEAT,
        /** A holder that extends its tenure or replaces its payload. */
        HOLDER
    }

    /**
     * The strategy that this store is.
     *
     * @return the strategy
     */
    LockStrategy strategy();

    /**
     * Tries once to take a lock. A denied attempt writes nothing and waits for nobody.
     *
     * @param claim what is asked for
     * @return granted, or denied with the reason
     */
    ClaimAnswer claim(Claim claim);

    /**
     * Renews tenures, all in one statement.
     *
     * @param renewals at most 1000
     * @param budget how long the answer may take at most: less than the shortest remaining trust
     * @param caller for whom
     * @return one answer for each, in any order
     */
    List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller);

    /**
     * Ends a tenure. It touches nothing unless name, fence and holder are those of the present tenure.
     *
     * @param release which, and how it ended
     * @return true if the tenure was still ours
     */
    boolean release(Release release);

    /**
     * Whether a completed version, or a payload, can be remembered at this moment.
     *
     * @return false where what would remember it is missing
     */
    default boolean remembers() {
        return true;
    }

    /**
     * Looks at one lock by reading only.
     *
     * @param name the lock's name
     * @return what is known; empty if it was never seen
     */
    Optional<LockInfo> find(String name);

    /**
     * Looks at all locks of the namespace by reading only.
     *
     * @return what is known, by name
     */
    List<LockInfo> findAll();

    /**
     * Ends whoever's tenure: a new fence, and unless {@code now} nobody is granted the lock before the old holder's trust
     * has ended.
     *
     * @param name the lock's name
     * @param key the name's advisory key
     * @param now skip that wait
     * @return true if a tenure was ended
     */
    boolean forceRelease(String name, long key, boolean now);

    /**
     * Pauses a lock: until it is resumed nobody is granted it, by whatever strategy. Whoever holds it keeps it.
     *
     * @param name the lock's name
     * @param reason why; null ends the pause
     * @return whether this changed anything but the reason
     */
    boolean pause(String name, @Nullable String reason);

    /**
     * Asks whoever holds a lock to give it back. The holder is told by the answer to its next renewal.
     *
     * @param name the lock's name
     * @param key the name's advisory key
     * @param reason why
     * @return false if nobody holds it by this strategy
     */
    boolean resign(String name, long key, String reason);

    /**
     * Who waits on other replicas, or on this one, as far as that can be seen.
     *
     * @return labels by wait key, see {@link WakeUps#waitKey}
     */
    default Map<Integer, List<String>> waiting() {
        return Map.of();
    }

    /**
     * How many sessions carry locks. Reads memory only.
     *
     * @return 0 where no session does
     */
    default int sessions() {
        return 0;
    }

    /**
     * Tries to take a lock that lasts until the end of somebody else's transaction. Where it is denied, the transaction is
     * as it was.
     *
     * @param transaction the connection that is in it
     * @param name the lock's name
     * @param key the name's advisory key
     * @return whether the lock is held
     * @throws IllegalStateException if the connection is in no transaction
     * @throws IllegalArgumentException if it does not lead to the database of the locks
     */
    default boolean tryInTransaction(Connection transaction, String name, long key) {
        throw new UnsupportedOperationException("The strategy " + strategy() + " knows no locks inside transactions");
    }

    /**
     * Tries once to take a lock that work is to be done on the connection of, like {@link #claim}.
     *
     * @param claim what is asked for
     * @return granted, or denied with the reason
     */
    default ClaimAnswer claimForWork(Claim claim) {
        return claim(claim);
    }

    /**
     * Does work on the connection that holds a lock, which was got by {@link #claimForWork}. Where strategies differ in what
     * holds it, they agree in this: nothing that the work commits is committed after the tenure has ended, as far as the
     * server can tell.
     *
     * @param held the tenure
     * @param work the work
     * @param <T> its result
     * @return the work's result
     * @throws dev.pglock.LockLostException if the tenure has ended; what was not committed before is rolled back
     * @throws SQLException what the work threw, or the commit
     */
    default <T extends @Nullable Object> T onConnection(Tenancy held, ConnectionWork<T> work) throws SQLException {
        throw new UnsupportedOperationException("The strategy " + strategy() + " has no connections");
    }

    /**
     * Finds out whether {@link #checkCommit} is of use on a connection.
     *
     * @param connection as transactions of the application have it
     * @return why not; null: it is
     * @throws SQLException if that could not be found out
     * @see dev.pglock.CommitFence#obstacle
     */
    default @Nullable String obstacleToFencing(Connection connection) throws SQLException {
        return "the strategy " + strategy() + " has nothing to fence by";
    }

    /**
     * Checks, just before a transaction commits, that a tenure still lasts, and sees to it that nobody else is granted the
     * lock until it has committed.
     *
     * @param transaction the connection that is about to commit
     * @param held under which tenure
     * @throws dev.pglock.LockLostException if the tenure has ended
     * @throws SQLException if that could not be found out
     */
    default void checkCommit(Connection transaction, Tenancy held) throws SQLException {
        throw new UnsupportedOperationException("The strategy " + strategy() + " has nothing to fence by");
    }

    /**
     * The tenure is over for its holder, although its body may still run: what nobody renews any more is not to be kept on
     * its behalf for longer than an unrenewed lease, and work that still runs on its connection is to be ended. Never blocks.
     *
     * @param held the tenure
     */
    default void abandon(Tenancy held) {}

    /**
     * A tenure, as the server knows it.
     *
     * @param name the lock's name
     * @param key the name's advisory key
     * @param fence the tenure's fence
     */
    record Tenancy(String name, long key, long fence) {}

    /**
     * Asks the database whether locks could be claimed and renewed at this moment, and writes nothing. It is for the end of
     * an outage that nobody else would notice; never on the heartbeat's thread.
     *
     * @return false where that cannot be asked: then the next claim tells
     */
    default boolean probe() {
        return false;
    }

    /**
     * Does what is due by time: removes what nobody needs any more, gives back what was kept for its minimum hold, closes
     * what has been idle for long. Called at the moments that it asked for, and now and then; never on the heartbeat's
     * thread.
     */
    default void tidyUp() {}

    /**
     * When {@link #tidyUp} has something to do. Asked after each release; never blocks.
     *
     * @return how long from now; null: nothing in sight
     */
    default @Nullable Duration untilTidyUp() {
        return null;
    }

    /** Closes the connections. Releases nothing. */
    @Override
    void close();
}
