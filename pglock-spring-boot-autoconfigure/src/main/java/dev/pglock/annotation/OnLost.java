package dev.pglock.annotation;

/** What happens to a running body when its lock is lost. */
public enum OnLost {
    /** As {@code pglock.on-lost} says. */
    DEFAULT,
    /** Its thread is interrupted, once. */
    INTERRUPT,
    /** It goes on; {@link dev.pglock.LockContext} tells it. */
    CONTINUE
}
