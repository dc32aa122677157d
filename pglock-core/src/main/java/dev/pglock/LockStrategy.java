package dev.pglock;

/** How a lock is kept: the room of the house that answers for it. */
public enum LockStrategy {
    /** A row with holder, expiry and fence, renewed by heartbeats. Pins no connection. */
    LEASE,
    /** A PostgreSQL session advisory lock on the replica's one lock session. */
    ADVISORY,
    /** In memory, for tests and for running without a database: excludes inside one process only. */
    LOCAL
}
