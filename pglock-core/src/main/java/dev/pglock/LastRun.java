package dev.pglock;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The last tenure of a lock that its holder ended himself. All instants are the server's.
 *
 * @param holder the holder's label
 * @param startedAt when the lock was granted
 * @param finishedAt when it was released
 * @param outcome how it ended
 * @param error the class name of what the body threw; null unless the outcome is {@link RunOutcome#FAILED}
 */
public record LastRun(
        @Nullable String holder,
        Instant startedAt,
        Instant finishedAt,
        RunOutcome outcome,
        @Nullable String error) {}
