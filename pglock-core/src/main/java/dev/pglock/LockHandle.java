package dev.pglock;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * One tenure of a lock: from its grant until it is released or lost. A handle that is no longer held never comes back to
 * life. All methods may be called from any thread.
 */
public interface LockHandle extends AutoCloseable {

    /**
     * The lock's name.
     *
     * @return the name, without its namespace
     */
    String name();

    /**
     * What this lock has in common with others whose names were evaluated.
     *
     * @return as {@link LockRequest#family} set it; null: it was not set
     */
    @Nullable
    String family();

    /**
     * The advisory key that the name is mapped to, as {@code pg_locks} shows it: {@code classid} holds its upper 32 bits,
     * {@code objid} its lower 32 bits, {@code objsubid} is 1.
     *
     * @return the 64-bit key
     */
    long key();

    /**
     * The strategy by which the lock is kept.
     *
     * @return the strategy
     */
    LockStrategy strategy();

    /**
     * The fencing token: strictly greater than that of every earlier tenure of the same name within one server history.
     * Hand it to a resource that refuses smaller ones than it has seen.
     *
     * @return the fence of this tenure
     */
    long fence();

    /**
     * When the lock was granted.
     *
     * @return the server's time
     */
    Instant acquiredAt();

    /**
     * When the tenure ends unless it is renewed, as the last claim or renewal told it.
     *
     * @return the server's time, for people to read; never compare it with a clock of this machine
     */
    Instant expiresAt();

    /**
     * How long its caller waited for the grant, everything included.
     *
     * @return zero or positive
     */
    Duration waited();

    /**
     * Whether the lock may still be trusted. Reads memory only: it never blocks and never asks the database.
     *
     * @return false once the tenure was released or lost, or could not be renewed in time
     */
    boolean isHeld();

    /**
     * How much longer the lock may be trusted if no renewal succeeds from now on. A renewal makes it longer again, unless it
     * has come to zero. Reads memory only.
     *
     * @return zero once the lock is held no longer
     */
    Duration trustedFor();

    /**
     * Throws unless {@link #isHeld()}.
     *
     * @throws LockLostException if the lock is held no longer
     */
    void ensureHeld();

    /**
     * Makes the tenure last for at least that long from now. An advisory lock lasts for the registry's lease duration from
     * its last renewal, whatever is asked for. Blocks for one round trip.
     *
     * @param duration positive
     * @throws LockLostException if the lock is held no longer
     * @throws LockStorageException if the database failed; the tenure is as it was
     */
    void extend(Duration duration);

    /**
     * Replaces the payload that everybody can read with {@link LockRegistry#find}. Blocks for one round trip.
     *
     * @param data at most {@link LockRequest#MAX_DATA_BYTES}; null removes it
     * @throws LockLostException if the lock is held no longer
     * @throws LockStorageException if the database failed; the payload may be old or new
     */
    void data(@Nullable String data);

    /**
     * Has the action run once, on a thread of the registry, when the lock is lost; at once if that has happened already.
     * It never runs after a release. What it throws is logged and changes nothing.
     *
     * @param action must not block for long: a registry runs 64 of them at a time, and the others wait
     */
    void onLost(Runnable action);

    /**
     * Has the action run once, on a thread of the registry, when an operator asks this replica to give the lock back; at once
     * if that has happened already. A body that runs under the handle is interrupted besides. The lock stays held until it is
     * released. What the action throws is logged and changes nothing.
     *
     * @param action must not block for long
     * @see LockRegistry#resign
     */
    void onResign(Runnable action);

    /**
     * Runs the body on the calling thread under this lock, then releases it, whatever happens. Meanwhile
     * {@link LockContext#current()} is this handle, and the thread is interrupted once if the lock is lost and
     * {@link OnLost#INTERRUPT} applies. The body's exception always wins: a failure to release is added to it as
     * suppressed, or logged when there is none.
     *
     * @param body the work
     * @param <T> its result
     * @param <E> what it may throw
     * @return what the body returned
     * @throws E what the body threw
     * @throws LockLostException if the lock was lost before the body began; the body was not run
     * @throws IllegalStateException if a body already runs under this handle, or the handle has been released
     */
    <T extends @Nullable Object, E extends Throwable> T execute(LockedCall<T, E> body) throws E;

    /**
     * Runs the body on the calling thread under this lock, like {@link #execute}, and keeps the lock until the stage that
     * it returns has completed, however that is; then releases it, on the thread that completed it. {@link LockContext}
     * knows of the lock only while the body itself runs. If the lock is lost and {@link OnLost#INTERRUPT} applies, the body
     * is interrupted while it runs, and its stage is cancelled afterwards, on a thread of the registry, if it is a
     * {@link java.util.concurrent.Future}. When the lock is only asked for, by an operator or the end of this replica, a
     * stage is cancelled if its class has a {@code cancel} of its own; to cancel a plain {@link CompletableFuture} is to
     * complete it under work that goes on, so that its lock would be released too soon: that work ends itself by
     * {@link #onResign}, or keeps its lock.
     *
     * @param body begins the work and returns the stage of its end, never null
     * @param <T> the result of the stage
     * @param <E> what the body may throw
     * @return completes after the release as the stage did, or with a {@link LockLostException} where a loss cancelled it;
     *     cancelling it cancels the stage
     * @throws E what the body threw; the lock has been released
     * @throws LockLostException if the lock was lost before the body began; the body was not run
     * @throws IllegalStateException if a body already runs under this handle, or the handle has been released
     */
    <T extends @Nullable Object, E extends Throwable> CompletableFuture<T> executeAsync(
            LockedCall<? extends CompletionStage<T>, E> body) throws E;

    /**
     * Gives the lock back. Blocks for one round trip. Idempotent: only the first call asks the database. A late release
     * never frees the next holder's lock.
     *
     * @return true if the lock was still ours; false if it had been lost or released before
     * @throws IllegalStateException while a body runs under this handle: what runs it releases it at its end
     * @throws LockStorageException if the database failed; the tenure ends by its expiry
     */
    boolean release();

    /**
     * Gives the lock back like {@link #release()}, but never throws: a failure is logged as WARN, and the tenure ends by
     * its expiry. While a body runs under this handle it does nothing.
     */
    @Override
    void close();
}
