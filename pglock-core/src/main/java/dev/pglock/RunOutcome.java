package dev.pglock;

/** How a tenure ended, as its holder told it. */
public enum RunOutcome {
    /** The body returned, or a handle was released. */
    SUCCEEDED,
    /** The body threw. */
    FAILED,
    /** The lock was lost while the body ran, whatever it returned. */
    LOST
}
