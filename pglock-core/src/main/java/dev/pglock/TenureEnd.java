package dev.pglock;

import java.time.Duration;

/**
 * The end of a tenure and of what ran under it.
 *
 * @param outcome how it ended; {@link RunOutcome#LOST} if the lock was lost before, whatever the body returned
 * @param release what became of the release
 * @param held from the grant until now
 * @param releaseTook how long giving the lock back took
 */
public record TenureEnd(RunOutcome outcome, Result release, Duration held, Duration releaseTook) {

    /** What can become of a release. */
    public enum Result {
        /** The lock was given back. */
        RELEASED,
        /** There was nothing to give back: the lock had been lost. */
        LOST,
        /** The database failed: the tenure ends by its expiry. */
        ERROR
    }
}
