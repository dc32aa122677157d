package dev.pglock;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One firing of a schedule that every replica has: work that is asked for with a tick is done by one of them, and the
 * others are denied with {@link DenialReason#TICK_DONE}, even when it has ended long before they ask. What is remembered
 * lies in the past and belongs to one trigger, so that a changed schedule is never held back by the old one.
 *
 * @see LockRegistry#attempt(LockRequest, Tick)
 */
public sealed interface Tick {

    /**
     * The greatest number of characters that a trigger may have.
     */
    int MAX_TRIGGER_LENGTH = 500;

    /** The fire times of a calendar, a cron expression say. Pure: the same moments on every replica. */
    @FunctionalInterface
    interface FireTimes {

        /**
         * The next fire time.
         *
         * @param after a moment
         * @return the first fire time strictly after it; null if there is none
         */
        @Nullable
        Instant next(Instant after);
    }

    /**
     * A fire time of a calendar. It is read off the replica's clock; what counts is the fire time that lies nearest to the
     * same moment on the server's clock. Replicas whose clocks differ agree so on the tick.
     *
     * @param trigger tells the triggers of one lock apart; the same on every replica
     * @param fireTime when the call was due, by the replica's clock; not when it was made
     * @param clock the replica's clock, as its scheduler reads it
     * @param fireTimes the calendar
     */
    record Calendar(String trigger, Instant fireTime, Clock clock, FireTimes fireTimes) implements Tick {

        /**
         * Checks the trigger.
         *
         * @param trigger tells the triggers of one lock apart
         * @param fireTime when the call was due
         * @param clock the replica's clock
         * @param fireTimes the calendar
         */
        public Calendar {
            checkTrigger(trigger);
        }
    }

    /**
     * A fire time of a schedule whose other fire times are not known. Replicas agree on it as far as they compute the same
     * instants; where they do not, it is plain mutual exclusion.
     *
     * @param trigger tells the triggers of one lock apart; the same on every replica
     * @param fireTime when the call was due
     */
    record Moment(String trigger, Instant fireTime) implements Tick {

        /**
         * Checks the trigger.
         *
         * @param trigger tells the triggers of one lock apart
         * @param fireTime when the call was due
         */
        public Moment {
            checkTrigger(trigger);
        }
    }

    /**
     * A firing at a fixed rate: one run per period over all replicas, whatever their phases. A claim may come a tenth of
     * the period early.
     *
     * @param trigger tells the triggers of one lock apart; the same on every replica
     * @param period positive
     */
    record Rate(String trigger, Duration period) implements Tick {

        /**
         * Checks trigger and period.
         *
         * @param trigger tells the triggers of one lock apart
         * @param period positive
         */
        public Rate {
            checkTrigger(trigger);
            if (period.isNegative() || period.isZero()) {
                throw new IllegalArgumentException("A tick's period must be positive, but is " + period);
            }
        }
    }

    /**
     * A firing with a fixed delay: as long after the end of the lock's last run, on whatever replica that was.
     *
     * @param delay zero or positive
     */
    record Delay(Duration delay) implements Tick {

        /**
         * Checks the delay.
         *
         * @param delay zero or positive
         */
        public Delay {
            if (delay.isNegative()) {
                throw new IllegalArgumentException("A tick's delay must not be negative, but is " + delay);
            }
        }
    }

    private static void checkTrigger(String trigger) {
        LockNames.checkText("A tick's trigger", trigger);
        if (trigger.isEmpty() || trigger.length() > MAX_TRIGGER_LENGTH) {
            throw new IllegalArgumentException("A tick's trigger must have 1 to " + MAX_TRIGGER_LENGTH
                    + " characters, but has " + trigger.length());
        }
    }
}
