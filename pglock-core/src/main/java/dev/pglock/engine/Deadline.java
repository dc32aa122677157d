package dev.pglock.engine;

import java.time.Duration;

/** The end of a wait, on the monotonic clock. */
final class Deadline {

    private static final Duration LONG = Duration.ofDays(365 * 100L);

    private final long startedAt = System.nanoTime();
    private final long timeoutNanos;

    private Deadline(long timeoutNanos) {
        this.timeoutNanos = timeoutNanos;
    }

    /** A deadline that much from now; a duration of more than a century never ends. */
    static Deadline in(Duration timeout) {
        return new Deadline((timeout.compareTo(LONG) > 0 ? LONG : timeout).toNanos());
    }

    long elapsed() {
        return System.nanoTime() - startedAt;
    }

    boolean isOver() {
        return elapsed() >= timeoutNanos;
    }

    /** What is left, but not more than the cap and not less than zero; in nanoseconds. */
    long remaining(long cap) {
        return Math.max(0, Math.min(cap, timeoutNanos - elapsed()));
    }
}
