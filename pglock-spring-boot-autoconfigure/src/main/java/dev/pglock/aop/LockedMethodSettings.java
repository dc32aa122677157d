package dev.pglock.aop;

import dev.pglock.LockStrategy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What interception needs to know of the configuration.
 *
 * @param scheduled which scheduled methods are locked
 * @param packages restricts {@link ScheduledMode#ALL} to classes in these packages and below; empty: all
 * @param everyReplica names ({@code LocalCache.refresh}) of scheduled methods that run on every replica
 * @param oncePerTick whether each tick runs once over all replicas; otherwise scheduled methods merely exclude each other
 * @param modes by lock name; a name that is not in it is {@link LockMode#LOCKED}
 * @param verification what happens when a method that should be locked cannot be
 * @param strategy the registry's strategy
 * @param leaseDuration the registry's lease duration
 * @param heartbeatInterval how often the registry renews; null: a third of the trust in the shortest lease
 * @param order of the advisor; null: just outside the transaction advisor
 */
public record LockedMethodSettings(
        ScheduledMode scheduled,
        List<String> packages,
        List<String> everyReplica,
        boolean oncePerTick,
        Map<String, LockMode> modes,
        Verification verification,
        LockStrategy strategy,
        Duration leaseDuration,
        @Nullable Duration heartbeatInterval,
        @Nullable Integer order) {

    /**
     * What a method does that has a lock of that name.
     *
     * @param name the lock's name
     * @return its mode
     */
    public LockMode mode(String name) {
        return modes.getOrDefault(name, LockMode.LOCKED);
    }
}
