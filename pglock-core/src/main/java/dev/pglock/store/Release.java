package dev.pglock.store;

import dev.pglock.RunOutcome;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The end of one tenure.
 *
 * @param name the lock's name
 * @param key the name's advisory key
 * @param fence the tenure's fence
 * @param outcome how its body ended
 * @param error the class name of what the body threw
 * @param minHold how long the lock stays closed at the least, counted from the grant; null: free at once
 * @param completed the version to be remembered as done; null: none
 * @param endCounts a delay until the next run is counted from this end
 */
public record Release(
        String name,
        long key,
        long fence,
        RunOutcome outcome,
        @Nullable String error,
        @Nullable Duration minHold,
        @Nullable String completed,
        boolean endCounts) {

    /**
     * Whether nobody would run too early if the end were forgotten and the lock ended by its expiry instead.
     *
     * @return false if a version, a minimal hold or a delay is to be remembered with it
     */
    public boolean isForgettable() {
        return completed == null && minHold == null && !endCounts;
    }
}
