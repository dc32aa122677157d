package dev.pglock.sample.lab;

import org.jspecify.annotations.Nullable;

/**
 * One line of the event log.
 *
 * @param id grows
 * @param at the server's time in milliseconds since 1970: its own where it told one, otherwise that of the lab's clock plus
 *     the offset measured last
 * @param kind {@code TAKE}, {@code DENIED}, {@code RENEW}, {@code RELEASE}, {@code LOST}, {@code DIED} and what else a
 *     replica tells; {@code LAB} for what was done to it
 * @param lock the lock's name
 * @param fence the fence of the tenure
 * @param replica whose event it is
 * @param reason the reason of a denial or a loss, the outcome of a release
 * @param detail more, for people
 */
record LabEvent(
        long id,
        long at,
        String kind,
        @Nullable String lock,
        @Nullable Long fence,
        @Nullable String replica,
        @Nullable String reason,
        @Nullable String detail) {

    boolean is(String kind, String lock) {
        return this.kind.equals(kind) && lock.equals(this.lock);
    }

    boolean isOf(String replica) {
        return replica.equals(this.replica);
    }

    /** The fence of an event that has one. */
    long fenceOrZero() {
        return this.fence == null ? 0 : this.fence;
    }
}
