package dev.pglock;

/** Why a tenure ended before its holder released it. */
public enum LossReason {
    /** No renewal succeeded in time: what was granted may be granted to somebody else from now on. */
    EXPIRED,
    /** The database says that the tenure is over: another fence, another holder, no row, or no session lock. */
    TAKEN,
    /** The session that carried the lock has ended. */
    SESSION_ENDED,
    /** The body ran longer than its {@code maxHold}: heartbeats stopped, the lock was given up. */
    MAX_HOLD,
    /** The registry was closed while the lock was held. */
    CLOSED
}
