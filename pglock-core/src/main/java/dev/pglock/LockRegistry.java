package dev.pglock;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/**
 * Takes locks that exclude every other replica with the same database and namespace. One registry stands for one
 * replica; inside it, a name is held at most once, whatever thread asks. Thread-safe.
 *
 * <p>No method joins, commits or suspends the caller's transaction but {@link #tryAcquireInTransaction}.
 */
public interface LockRegistry {

    /**
     * Makes one attempt to take a lock, and tells why it was denied. Blocks for one round trip (two for a name never
     * seen), and not at all if this replica holds the lock itself.
     *
     * @param request what is asked for
     * @return granted with a handle, or denied with the reason
     * @throws LockStorageException if the database failed
     */
    default LockAttempt attempt(LockRequest request) {
        return attempt(request, null);
    }

    /**
     * Makes one attempt to take a lock for one firing of a schedule, like {@link #attempt(LockRequest)}: denied with
     * {@link DenialReason#TICK_DONE} if that tick, or a later one, was granted before, here or on another replica. The
     * grant remembers the tick, whatever becomes of the work; so whoever tries the same work again, after a failure say,
     * asks without it.
     *
     * @param request what is asked for
     * @param tick the firing; null: the call belongs to no schedule
     * @return granted with a handle, or denied with the reason
     * @throws LockStorageException if the database failed
     */
    LockAttempt attempt(LockRequest request, @Nullable Tick tick);

    /**
     * Makes one attempt to take a lock, like {@link #attempt}.
     *
     * @param request what is asked for
     * @return the handle, to be released; empty if the lock was denied
     * @throws LockStorageException if the database failed
     */
    default Optional<LockHandle> tryAcquire(LockRequest request) {
        return attempt(request) instanceof LockAttempt.Granted granted ? Optional.of(granted.lock()) : Optional.empty();
    }

    /**
     * Takes a lock, waiting for it up to the request's wait timeout, everything included. While it waits, no connection
     * is pinned and no transaction is open.
     *
     * @param request what is asked for
     * @return the handle, to be released
     * @throws LockTimeoutException if the lock did not become free in time
     * @throws LockNotAcquiredException if waiting is of no use: the request's version has already succeeded, or this
     *     registry is stopping
     * @throws LockStorageException if the database failed at the first attempt, or still fails when the time is over
     * @throws InterruptedException if the thread was interrupted; nothing is left behind
     */
    LockHandle acquire(LockRequest request) throws InterruptedException;

    /**
     * Runs the task if the lock is free, and skips it otherwise. With a version it is skipped for ever once it has succeeded.
     *
     * @param request what is asked for
     * @param task runs on the calling thread under the lock
     * @return whether the task was run
     * @throws LockStorageException if the database failed; the task was not run
     */
    default boolean runOnce(LockRequest request, LockedTask task) {
        if (attempt(request) instanceof LockAttempt.Granted granted) {
            granted.lock().execute(() -> {
                task.run();
                return null;
            });
            return true;
        }
        return false;
    }

    /**
     * Runs the task if the lock is free, like {@link #runOnce(LockRequest, LockedTask)}.
     *
     * @param name the lock's name
     * @param task runs on the calling thread under the lock
     * @return whether the task was run
     */
    default boolean runOnce(String name, LockedTask task) {
        return runOnce(LockRequest.of(name), task);
    }

    /**
     * Makes a task for a scheduler that knows nothing of locks: each of its runs is one {@link #runOnce}.
     *
     * @param request what is asked for at each run
     * @param task runs on the scheduler's thread under the lock, and is skipped while the lock is held
     * @return throws {@link LockStorageException} when the database failed, besides what the task throws
     */
    default Runnable asRunnable(LockRequest request, LockedTask task) {
        return () -> {
            boolean ignored = runOnce(request, task);
        };
    }

    /**
     * Makes a call for an executor that knows nothing of locks, like {@link #asRunnable}.
     *
     * @param request what is asked for at each call
     * @param call runs on the executor's thread under the lock
     * @param <T> its result, not null
     * @return empty when it was skipped; throws {@link LockStorageException} when the database failed, besides what the call
     *     throws
     */
    default <T> Callable<Optional<T>> asCallable(LockRequest request, Callable<T> call) {
        return () -> attempt(request) instanceof LockAttempt.Granted granted
                ? Optional.of(granted.lock().<T, Exception>execute(call::call))
                : Optional.empty();
    }

    /**
     * Waits for the lock and runs the task under it. With a version it waits until the work is done, by whomever: it runs the
     * task, or returns without running it when that version has succeeded. Whoever waits takes over from who failed or died.
     *
     * @param request what is asked for
     * @param task runs on the calling thread under the lock
     * @throws LockTimeoutException if the lock did not become free in time; the task was not run
     * @throws LockStorageException if the database failed; the task was not run
     * @throws InterruptedException if the thread was interrupted while it waited; the task was not run
     */
    default void runBlocking(LockRequest request, LockedTask task) throws InterruptedException {
        LockHandle lock;
        try {
            lock = acquire(request);
        } catch (LockNotAcquiredException e) {
            if (e.reason() == DenialReason.DONE) {
                return;
            }
            throw e;
        }
        lock.execute(() -> {
            task.run();
            return null;
        });
    }

    /**
     * Waits for the lock and runs the task, like {@link #runBlocking(LockRequest, LockedTask)}.
     *
     * @param name the lock's name
     * @param task runs on the calling thread under the lock
     * @throws InterruptedException if the thread was interrupted while it waited; the task was not run
     */
    default void runBlocking(String name, LockedTask task) throws InterruptedException {
        runBlocking(LockRequest.of(name), task);
    }

    /**
     * Waits for the lock, does work on the very connection that holds it, and releases it. For the advisory strategy that is
     * a session of the lock's own: when it ends, lock and work end together. For a lease, each commit of the work goes
     * through only while the tenure lasts, and nobody else is granted the lock meanwhile. No other connection is taken for
     * the work.
     *
     * @param request what is asked for
     * @param work runs on the calling thread under the lock
     * @param <T> its result
     * @return what the work returned
     * @throws LockTimeoutException if the lock did not become free in time; the work was not done
     * @throws LockLostException if the lock was lost: what the work had not committed was rolled back
     * @throws LockStorageException if the database failed; the work was not done
     * @throws InterruptedException if the thread was interrupted while it waited; the work was not done
     * @throws SQLException what the work threw, or its last commit
     * @throws UnsupportedOperationException if the strategy has no connections
     */
    <T extends @Nullable Object> T onConnection(LockRequest request, ConnectionWork<T> work)
            throws InterruptedException, SQLException;

    /**
     * Tries to take a lock that lasts until the caller's own transaction commits or rolls back. It excludes every other
     * holder of the name, whatever the strategy; nothing is written, and there is neither a fence nor a heartbeat. Blocks for
     * a few round trips on that connection. Do not roll back to a savepoint that was set before: the lock would end with it.
     *
     * @param transaction a connection to the database of the locks, in a transaction
     * @param name the lock's name
     * @return whether the lock is held
     * @throws IllegalStateException if the connection is in autocommit mode: the lock would end at once
     * @throws IllegalArgumentException if it leads to another database, or another server: the lock would exclude nobody; the
     *     transaction is as it was
     * @throws LockStorageException if the database failed, or is a standby; the transaction is as it was, or broken by that failure
     * @throws UnsupportedOperationException if the strategy has no connections
     */
    boolean tryAcquireInTransaction(Connection transaction, String name);

    /**
     * Whether a handle is one of this registry's: the same name may be held on the same thread for another namespace.
     *
     * @param lock a handle
     * @return whether this registry granted it
     */
    boolean owns(LockHandle lock);

    /**
     * Looks at a lock without taking it. Never acquires, never writes.
     *
     * @param name the lock's name
     * @return what is known; empty if the name was never seen
     * @throws LockStorageException if the database failed
     */
    Optional<LockInfo> find(String name);

    /**
     * Looks at all locks of the namespace without taking any. Never acquires, never writes.
     *
     * @return what is known, by name
     * @throws LockStorageException if the database failed
     */
    List<LockInfo> findAll();

    /**
     * Ends the holder's tenure, for operators: it gets a new fence, the holder is told at his next heartbeat, and others
     * are kept out until the old holder's trust has ended.
     *
     * @param name the lock's name
     * @param reason written to the log
     * @return true if a tenure was ended; false if nobody held the lock
     * @throws LockStorageException if the database failed
     */
    default boolean forceRelease(String name, String reason) {
        return forceRelease(name, reason, false);
    }

    /**
     * Ends the holder's tenure, like {@link #forceRelease(String, String)}.
     *
     * @param name the lock's name
     * @param reason written to the log
     * @param now true: others may be granted the lock at once, although the old holder may still believe that he has it:
     *     two may run at the same time for up to one heartbeat interval
     * @return true if a tenure was ended; false if nobody held the lock
     * @throws LockStorageException if the database failed
     */
    boolean forceRelease(String name, String reason, boolean now);

    /**
     * Pauses a lock, for operators: until {@link #resume} nobody is granted it, on whatever replica and by whatever strategy;
     * attempts are denied with {@link DenialReason#PAUSED}. Whoever holds it at this moment keeps it until it ends. Pausing a
     * paused lock replaces the reason. A name never seen can be paused too.
     *
     * @param name the lock's name
     * @param reason written to the log and kept beside the lock; not blank
     * @throws LockStorageException if the database failed, or has no table that could remember it
     */
    void pause(String name, String reason);

    /**
     * Ends a pause, for operators. Ticks that were missed meanwhile are not made up for.
     *
     * @param name the lock's name
     * @param reason written to the log
     * @return false if the lock was not paused
     * @throws LockStorageException if the database failed
     */
    boolean resume(String name, String reason);

    /**
     * Asks the holder to give the lock back, for operators. It is told at its next heartbeat: a body is interrupted once,
     * a leader steps down, {@link LockHandle#onResign} actions run. The lock stays the holder's until its body has ended, so
     * nothing ever runs twice by this; a body that goes on keeps it.
     *
     * @param name the lock's name
     * @param reason written to the log here and at the holder
     * @return true if a holder was asked; false if nobody held the lock
     * @throws LockStorageException if the database failed, or has no table by which an advisory lock's holder can be asked
     */
    boolean resign(String name, String reason);

    /**
     * How this replica's locks are, from memory: nothing is asked, nothing blocks.
     *
     * @return one for each strategy that this registry has
     */
    List<StoreStatus> status();
}
