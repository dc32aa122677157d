package dev.pglock;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** One replica's leadership, from its grant until it ends. A term that has ended never comes back to life. Thread-safe. */
public final class LeaderTerm {

    /** Why a term ends. */
    enum End {
        STOPPED,
        RESIGNED,
        CALLBACK_FAILED,
        NOT_RENEWED
    }

    /** What is kept of the lease for those who have to be told before anybody else can be granted the role. */
    private static final int RESERVED_PART = 4;

    private final String role;
    private final LockHandle lock;
    private final Duration reserve;
    private final AtomicReference<@Nullable End> end = new AtomicReference<>();

    LeaderTerm(String role, LockHandle lock, Duration lease) {
        this.role = role;
        this.lock = lock;
        this.reserve = lease.dividedBy(RESERVED_PART);
    }

    /**
     * The role.
     *
     * @return its name
     */
    public String role() {
        return role;
    }

    /**
     * The epoch of this term: strictly greater than that of every earlier term of the role, on whatever replica. Hand it to a
     * resource that refuses smaller ones than it has seen.
     *
     * @return the fence of the lock
     */
    public long fence() {
        return lock.fence();
    }

    /**
     * Whether this replica still leads. It ceases to be true a quarter of the lease before the lock itself could no longer be
     * trusted. Reads memory only.
     *
     * @return false once the term has ended
     */
    public boolean isActive() {
        if (end.get() == null && left().isZero()) {
            // A renewal may be answered yet. Whoever has been told that the term is over must not be the only one who
            // was.
            boolean ignored = end(End.NOT_RENEWED);
        }
        return end.get() == null;
    }

    /** How long it lasts unless its lock is renewed. */
    Duration left() {
        Duration left = lock.trustedFor().minus(reserve);
        return left.isNegative() ? Duration.ZERO : left;
    }

    /** The first reason counts; tells whether this is it. */
    boolean end(End reason) {
        return end.compareAndSet(null, reason);
    }

    @Nullable
    End end() {
        return end.get();
    }

    @Override
    public String toString() {
        return "LeaderTerm[" + role + ", fence " + fence() + (isActive() ? "" : ", over") + "]";
    }
}
