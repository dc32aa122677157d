package dev.pglock;

/** What happens to a running body when its lock is lost. */
public enum OnLost {
    /** The thread that runs the body is interrupted, once, and never after the body has ended. */
    INTERRUPT,
    /** The body goes on; it is told by {@link LockHandle#isHeld()} and by its loss callbacks only. */
    CONTINUE
}
