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
