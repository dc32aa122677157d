package dev.pglock.store;

import dev.pglock.Tick;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A tick in the terms of the server's clock, which is how rows remember it. A tick has been done when what is remembered
 * (the last tick of the trigger; without a trigger the end of the lock's last run) lies between {@code tick}, or
 * {@code reach} before now, and {@code slack} after now. What lies further in the future is no memory of this schedule.
 *
 * @param trigger under which the tick is remembered; null: nothing is
 * @param tick the tick as an instant; null: the grant decides
 * @param reach how far back something remembered stands in the way
 * @param slack how far in the future something remembered may lie
 * @param period how far ticks lie apart whose instant the grant decides
 */
public record TickGuard(
        @Nullable String trigger,
        @Nullable Instant tick,
        @Nullable Duration reach,
        @Nullable Duration slack,
        @Nullable Duration period) {

    /** No tick: nothing stands in the way, and nothing is remembered. */
    public static final TickGuard NONE = new TickGuard(null, null, null, null, null);

    /** How much sooner a delay may be over: timers fire early, clocks are read apart. */
    private static final Duration TOLERANCE = Duration.ofMillis(10);

    /** How far a fire time may lie ahead of the server's clock when its calendar is not known. */
    private static final Duration SLACK = Duration.ofSeconds(5);

    private static final Duration GREATEST_GAP = Duration.ofDays(3660);

    /**
     * Reads a tick.
     *
     * @param tick the tick; null: none
     * @param clock must have learnt something if the tick is one of a calendar
     * @return its guard
     */
    public static TickGuard of(@Nullable Tick tick, ServerClock clock) {
        if (tick == null) {
            return NONE;
        }
        if (tick instanceof Tick.Calendar calendar) {
            return of(calendar, Objects.requireNonNull(clock.now(), "The server's clock must be known"));
        }
        if (tick instanceof Tick.Moment moment) {
            return new TickGuard(moment.trigger(), moment.fireTime(), null, SLACK, null);
        }
        if (tick instanceof Tick.Rate rate) {
            Duration period = bounded(rate.period());
            return new TickGuard(rate.trigger(), null, period.minus(period.dividedBy(10)), period, period);
        }
        Duration delay = bounded(((Tick.Delay) tick).delay());
        return new TickGuard(null, null, delay.minus(TOLERANCE), Duration.ZERO, null);
    }

    /** What reaches beyond the calendar would be an error of the server, at each claim. */
    private static Duration bounded(Duration duration) {
        return duration.compareTo(GREATEST_GAP) < 0 ? duration : GREATEST_GAP;
    }

    private static TickGuard of(Tick.Calendar calendar, Instant serverNow) {
        Duration ahead = Duration.between(calendar.clock().instant(), serverNow);
        Instant tick = nearest(calendar, calendar.fireTime().plus(ahead));
        Instant next = calendar.fireTimes().next(tick);
        Duration gap = next == null ? GREATEST_GAP : Duration.between(tick, next);
        return new TickGuard(calendar.trigger(), tick, null, gap, null);
    }

    private static Instant nearest(Tick.Calendar calendar, Instant moment) {
        Instant after = calendar.fireTimes().next(moment);
        Instant before = lastUntil(calendar, moment);
        if (before == null || after == null) {
            return before != null ? before : after != null ? after : calendar.fireTime();
        }
        return Duration.between(before, moment).compareTo(Duration.between(moment, after)) <= 0 ? before : after;
    }

    /** Calendars are only read forwards: looks from ever further back. */
    private static @Nullable Instant lastUntil(Tick.Calendar calendar, Instant moment) {
        Instant second = calendar.fireTimes().next(calendar.fireTime());
        Duration back = second == null ? Duration.ofMinutes(1) : Duration.between(calendar.fireTime(), second);
        for (; back.compareTo(GREATEST_GAP) <= 0; back = back.multipliedBy(2)) {
            Instant found = calendar.fireTimes().next(moment.minus(back));
            if (found == null || found.isAfter(moment)) {
                continue;
            }
            for (Instant next = found;
                    next != null && !next.isAfter(moment);
                    next = calendar.fireTimes().next(next)) {
                found = next;
            }
            return found;
        }
        return null;
    }

    /**
     * Whether this guard needs to know what time it is on the server.
     *
     * @param tick the tick
     * @return true for fire times of a calendar
     */
    public static boolean needsServerTime(@Nullable Tick tick) {
        return tick instanceof Tick.Calendar;
    }

    /**
     * Whether a tick has been done.
     *
     * @param remembered the last tick of the trigger, or the end of the last run
     * @param now the server's time
     * @return true if it must not be run again
     */
    public boolean isDone(@Nullable Instant remembered, Instant now) {
        Instant since = tick != null ? tick : reach != null ? now.minus(reach) : null;
        return remembered != null
                && since != null
                && slack != null
                && !remembered.isBefore(since)
                && !remembered.isAfter(now.plus(slack));
    }

    /**
     * What is to be remembered when the claim is granted.
     *
     * @param remembered the last tick of the trigger
     * @param now the server's time
     * @return the tick; for a rate: one period after the last, or now when that would leave the next one in the past
     */
    public Instant granted(@Nullable Instant remembered, Instant now) {
        if (tick != null) {
            return tick;
        }
        if (remembered == null || period == null || remembered.isAfter(now.plus(period))) {
            return now;
        }
        Instant due = remembered.plus(period);
        return due.plus(period).isAfter(now) ? due : now;
    }
}
