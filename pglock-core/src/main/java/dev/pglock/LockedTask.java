package dev.pglock;

/** Work that runs under a lock and returns nothing. */
@FunctionalInterface
public interface LockedTask {

    /** Does the work. {@link LockContext#current()} is the lock's handle meanwhile. */
    void run();
}
