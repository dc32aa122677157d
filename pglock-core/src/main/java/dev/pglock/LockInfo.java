package dev.pglock;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the database knows of a lock, read without taking it. All instants are the server's.
 *
 * @param name the lock's name, without its namespace
 * @param strategy by which strategy it is kept
 * @param state its state when it was read
 * @param holder the label of the holder, or of the one whose tenure has expired; null when free
 * @param fence the fence of the last tenure; null for an advisory lock that another replica holds
 * @param acquiredAt when the last tenure began; null for an advisory lock that another replica holds
 * @param expiresAt when the present tenure ends unless it is renewed; when the hold ends for {@link LockState#HOLD};
 *     null when free
 * @param data the payload of the last tenure
 * @param lastRun the last run that its holder ended himself
 * @param completed the versions that have succeeded, in their order
 */
public record LockInfo(
        String name,
        LockStrategy strategy,
        LockState state,
        @Nullable String holder,
        @Nullable Long fence,
        @Nullable Instant acquiredAt,
        @Nullable Instant expiresAt,
        @Nullable String data,
        @Nullable LastRun lastRun,
        List<CompletedVersion> completed) {}
