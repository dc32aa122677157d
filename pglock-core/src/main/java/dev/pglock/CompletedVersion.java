package dev.pglock;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A version of work that has succeeded, once for ever. Whoever has added the version to the table by hand has left no more
 * than that.
 *
 * @param version the version
 * @param finishedAt when its run was over; the server's time
 * @param holder the label of the replica that ran it
 * @param took from the grant of the lock until its release
 */
public record CompletedVersion(
        String version,
        @Nullable Instant finishedAt,
        @Nullable String holder,
        @Nullable Duration took) {}
