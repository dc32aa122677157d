package dev.pglock.observability;

import dev.pglock.LockHandle;
import io.micrometer.observation.Observation;

/** What is known of a body that runs under a lock. */
public final class LockObservationContext extends Observation.Context {

    private final LockHandle lock;
    private final String lockTag;
    private volatile boolean ended;
    private volatile boolean lost;

    LockObservationContext(LockHandle lock, String lockTag) {
        this.lock = lock;
        this.lockTag = lockTag;
    }

    /**
     * The lock.
     *
     * @return the tenure under which the body runs
     */
    public LockHandle getLock() {
        return lock;
    }

    /**
     * The lock as a tag: of which there are few.
     *
     * @return what was written in the source, or {@code other}
     */
    public String getLockTag() {
        return lockTag;
    }

    /**
     * Whether the lock was lost before the body ended. Known at the end.
     *
     * @return true: another replica may have run at the same time
     */
    public boolean isLost() {
        return lost;
    }

    /**
     * Whether the body has ended.
     *
     * @return false while it runs
     */
    public boolean isEnded() {
        return ended;
    }

    void end(boolean itsLockWasLost) {
        lost = itsLockWasLost;
        ended = true;
    }
}
