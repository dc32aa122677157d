package dev.pglock.annotation;

/** What a {@link RunOnce} call does that does not get the lock. */
public enum IfHeld {
    /** It returns without running. */
    SKIP,
    /** It throws {@link dev.pglock.LockNotAcquiredException}. */
    FAIL,
    /** Only with a version: it waits until whoever runs it is done, or takes over when he failed. */
    WAIT
}
