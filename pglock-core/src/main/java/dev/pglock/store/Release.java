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
 */
public record Release(
        String name,
        long key,
        long fence,
        RunOutcome outcome,
        @Nullable String error,
        @Nullable Duration minHold,
        @Nullable String completed) {}
