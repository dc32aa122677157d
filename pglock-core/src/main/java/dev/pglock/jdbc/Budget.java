package dev.pglock.jdbc;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * The time that is left for a piece of work, by {@link System#nanoTime()}.
 *
 * @param end the moment at which it is used up
 */
record Budget(long end) {

    static Budget of(Duration duration) {
        return new Budget(System.nanoTime() + duration.toNanos());
    }

    /** Half of what is left, from now. */
    Budget half() {
        return new Budget(System.nanoTime() + nanosLeft() / 2);
    }

    boolean isUsedUp() {
        return nanosLeft() == 0;
    }

    long nanosLeft() {
        return Math.max(0, end - System.nanoTime());
    }

    /** Never 0, which JDBC takes for "no limit". */
    int millisLeft() {
        return (int) Math.max(1, Math.min(Integer.MAX_VALUE, TimeUnit.NANOSECONDS.toMillis(nanosLeft())));
    }
}
