package dev.pglock.aop;

/** How configuration changes what one annotated lock does. */
public enum LockMode {
    /** As annotated. */
    LOCKED,
    /** Not locked: every replica runs it. */
    EVERY_REPLICA,
    /** Not run at all: calls are denied as paused. */
    PAUSED
}
