package dev.pglock;

/** Why a claim was denied. */
public enum DenialReason {
    /**
     * Somebody holds the lock; the denial names him, and for a lease it tells when his tenure ends unless he renews it. An
     * advisory lock has no such moment.
     */
    HELD,
    /** A foreign session, a transaction or a claim in progress has the name's key; the denial names it where it can. */
    KEY_BUSY,
    /** This tick, or a later one, has already run. */
    TICK_DONE,
    /** This version has already succeeded. */
    DONE,
    /** The lock is free but kept for its minimum hold, or after a forced release. */
    HOLD,
    /** An operator has paused the lock. */
    PAUSED,
    /** This registry is stopping or stopped and takes no new locks. */
    STOPPING,
    /** A race was lost between reading the row and writing it; the next attempt will tell more. */
    UNKNOWN
}
