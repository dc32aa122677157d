package dev.pglock;

/**
 * Told when this replica becomes the leader of a role and when it stops being it. Both methods are called on one thread of
 * the election, one after the other, never at the same time: {@code revoked} follows every {@code granted}, also one that
 * threw.
 */
public interface LeaderListener {

    /**
     * This replica leads from now on. It may return at once, having started what only the leader does, or go on working for
     * as long as {@link LeaderTerm#isActive()}: the thread is interrupted once when the term ends.
     *
     * @param term the term that begins
     * @throws Exception gives up the leadership: it is logged, {@link #revoked} is called, and the replica stands for
     *     election again after a while
     */
    default void granted(LeaderTerm term) throws Exception {}

    /**
     * This replica leads no more. On {@link LeaderElection#stop()} and {@link LeaderElection#resign()} nobody else is granted
     * the role before this method has ended; where renewals fail, it has at least a quarter of the lease for that.
     *
     * @param term the term that has ended
     * @throws Exception is logged and changes nothing
     */
    default void revoked(LeaderTerm term) throws Exception {}
}
