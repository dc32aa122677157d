package dev.pglock;

/** What the database says of a lock at the moment of looking. */
public enum LockState {
    /** Nobody holds it and nothing keeps it from being granted. */
    FREE,
    /** Somebody holds it. */
    HELD,
    /** Somebody held it and vanished: his tenure has ended and the next claim will be granted. */
    EXPIRED,
    /** Free, but kept for its minimum hold or after a forced release. */
    HOLD,
    /** Paused by an operator. */
    PAUSED
}
