package dev.pglock;

import java.time.Duration;

/**
 * Told of what happens to the locks of one registry. What it throws is logged and changes nothing. Must be thread-safe.
 *
 * <p>Grants, denials and releases are told on the thread on which they happen: be quick, and do not block. Losses and outages
 * are told on a thread of their own, one after the other, so that nothing keeps heartbeats from going on; a listener that
 * blocks there delays only what is told after it.
 */
public interface LockListener {

    /**
     * A lock was granted to this replica.
     *
     * @param lock the tenure
     */
    default void acquired(LockHandle lock) {}

    /**
     * An attempt was denied.
     *
     * @param denial why
     */
    default void denied(Denial denial) {}

    /**
     * A tenure of this replica ended by release.
     *
     * @param lock the tenure
     * @param outcome how its body ended
     */
    default void released(LockHandle lock, RunOutcome outcome) {}

    /**
     * A tenure of this replica was lost.
     *
     * @param lock the tenure
     * @param reason why
     */
    default void lost(LockHandle lock, LossReason reason) {}

    /**
     * A caller's wish for a lock came to its end, however it did. Told once for each call; {@link #denied} is told for each
     * question that the database, or this replica, answered meanwhile.
     *
     * @param acquisition how it ended
     */
    default void settled(Acquisition acquisition) {}

    /**
     * A tenure of this replica is over and so is what ran under it: told exactly once for each that was acquired, lost ones
     * included, unless its body never ends and its handle is never closed.
     *
     * @param lock the tenure
     * @param end how it ended
     */
    default void ended(LockHandle lock, TenureEnd end) {}

    /**
     * A renewal succeeded, but late: less than a quarter of its trust was left. A little later, and the lock would have been
     * lost.
     *
     * @param lock the tenure
     * @param left for how long the lock would still have been trusted
     */
    default void renewedLate(LockHandle lock, Duration left) {}

    /**
     * An operator has asked this replica to give a lock back. Its body is being interrupted.
     *
     * @param lock the tenure
     * @param reason as the operator gave it
     */
    default void resigning(LockHandle lock, String reason) {}

    /**
     * A heartbeat came to its end: the renewal of everything that is held by one strategy.
     *
     * @param strategy the strategy
     * @param succeeded whether the database answered
     * @param took how long it took
     */
    default void heartbeat(LockStrategy strategy, boolean succeeded, Duration took) {}

    /**
     * The database began to fail. Told once, not at every attempt.
     *
     * @param strategy the strategy whose store failed
     * @param cause the first failure
     */
    default void outageBegan(LockStrategy strategy, LockStorageException cause) {}

    /**
     * The database works again.
     *
     * @param strategy the strategy whose store failed
     * @param lasted how long it did not
     */
    default void outageEnded(LockStrategy strategy, Duration lasted) {}
}
