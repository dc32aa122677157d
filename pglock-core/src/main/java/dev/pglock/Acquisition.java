package dev.pglock;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How one caller's wish for a lock ended, the wait included: told once for each call, however often the database was asked.
 *
 * @param request what was asked for, with what configuration made of it
 * @param strategy by which strategy
 * @param outcome how it ended
 * @param took from the call until its end
 * @param waited whether the caller had to wait: for another caller of this replica, or after a first denial
 * @param denial why it was denied in the end; null unless the outcome is {@link Outcome#HELD} or {@link Outcome#TIMEOUT}
 */
public record Acquisition(
        LockRequest request,
        LockStrategy strategy,
        Outcome outcome,
        Duration took,
        boolean waited,
        @Nullable Denial denial) {

    /** How a wish for a lock can end. */
    public enum Outcome {
        /** The caller has the lock. */
        ACQUIRED,
        /** It was denied to a caller who does not wait, or waits in vain: held, paused, this tick or version done. */
        HELD,
        /** It was waited for until the time was over, or the waiting thread was interrupted. */
        TIMEOUT,
        /** The database failed. */
        ERROR
    }
}
