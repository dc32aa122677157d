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
 * @param paused why an operator has paused the lock; null: it is not paused. Who holds it at that moment keeps it
 * @param waiting the labels of the replicas that wait for it, as far as they have a session that listens
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
        List<CompletedVersion> completed,
        @Nullable String paused,
        List<String> waiting) {

    /**
     * The same, with who waits.
     *
     * @param replicas their labels
     * @return a copy
     */
    public LockInfo waiting(List<String> replicas) {
        return new LockInfo(
                name,
                strategy,
                state,
                holder,
                fence,
                acquiredAt,
                expiresAt,
                data,
                lastRun,
                completed,
                paused,
                List.copyOf(replicas));
    }
}
