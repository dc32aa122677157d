package dev.pglock.advisory;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A key that a lock session holds.
 *
 * @param name the lock's name
 * @param fence the tenure's fence
 * @param acquiredAt the server's time of the grant
 * @param grantedAt {@link System#nanoTime()} when the grant was known here
 * @param tick the tick that it was granted for
 * @param keptUntil {@link System#nanoTime()} until which the key is kept although its tenure has ended; null while that
 *     lasts
 */
record Held(
        String name,
        long fence,
        Instant acquiredAt,
        long grantedAt,
        @Nullable TickKey tick,
        @Nullable Long keptUntil) {

    static Held granted(String name, long fence, Instant acquiredAt, @Nullable TickKey tick) {
        return new Held(name, fence, acquiredAt, System.nanoTime(), tick, null);
    }

    /** Nobody's tenure: a claim that failed may have left the key behind, to be given back. */
    static Held leftOver(String name) {
        return new Held(name, 0, Instant.EPOCH, System.nanoTime(), null, System.nanoTime());
    }

    /** The tenure has ended; its minimum hold has not. */
    Held keptFor(Duration minHold) {
        return new Held(name, fence, acquiredAt, grantedAt, tick, grantedAt + minHold.toNanos());
    }

    /** The tenure has ended, and the key is to be given back as soon as that works. */
    Held over() {
        return new Held(name, fence, acquiredAt, grantedAt, tick, System.nanoTime());
    }

    /** The tenure was lost, and its body may still run; it gets that long to end. */
    Held lost(Duration grace) {
        return new Held(name, fence, acquiredAt, grantedAt, tick, System.nanoTime() + grace.toNanos());
    }

    boolean isKept() {
        return keptUntil != null;
    }

    /** Whether the next tick depends on when this tenure ends. */
    boolean endCounts() {
        return tick != null && tick.afterEnd();
    }

    /** How long it is kept from now; zero when it is to be given back. */
    Duration left(long now) {
        return keptUntil == null ? Duration.ZERO : Duration.ofNanos(Math.max(0, keptUntil - now));
    }

    boolean isOver(long now) {
        return keptUntil != null && now - keptUntil >= 0;
    }
}
