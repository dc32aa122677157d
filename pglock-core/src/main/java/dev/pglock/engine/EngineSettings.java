package dev.pglock.engine;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The defaults of a registry, for what a {@link LockRequest} leaves open.
 *
 * @param namespace the part of the database's locks that this application sees; may be empty
 * @param label the replica's name for people
 * @param strategy the strategy
 * @param leaseDuration how long a grant or renewal is good for
 * @param heartbeatInterval how often to renew; null: a third of the time for which the shortest lease held is trusted. It
 *     is never more than that
 * @param waitTimeout how long {@code acquire} waits at most
 * @param maxHold how long a body may run at most; null: no limit
 * @param onLost what happens to a body whose lock is lost
 */
public record EngineSettings(
        String namespace,
        String label,
        LockStrategy strategy,
        Duration leaseDuration,
        @Nullable Duration heartbeatInterval,
        Duration waitTimeout,
        @Nullable Duration maxHold,
        OnLost onLost) {

    /** The shortest lease: below it the margin of trust would eat too much of it. */
    public static final Duration LEAST_LEASE = Duration.ofMillis(500);

    /** The longest lease. */
    public static final Duration GREATEST_LEASE = Duration.ofDays(365);

    /**
     * Checks that the durations make sense.
     *
     * @param namespace the namespace
     * @param label the replica's name for people
     * @param strategy the strategy
     * @param leaseDuration how long a grant or renewal is good for
     * @param heartbeatInterval how often to renew
     * @param waitTimeout how long {@code acquire} waits at most
     * @param maxHold how long a body may run at most
     * @param onLost what happens to a body whose lock is lost
     */
    public EngineSettings {
        checkLease(leaseDuration);
        if (heartbeatInterval != null
                && (heartbeatInterval.toMillis() < 1
                        || heartbeatInterval.multipliedBy(3).compareTo(leaseDuration) > 0)) {
            throw new IllegalArgumentException("The heartbeat interval (" + heartbeatInterval
                    + ") must be positive and at most a third of the lease duration (" + leaseDuration + ")");
        }
    }

    /**
     * The defaults of the documentation: leases of 30 s, waiting for 30 s, interruption on loss.
     *
     * @param namespace the namespace
     * @param label the replica's name for people
     * @param strategy the strategy
     * @return the settings
     */
    public static EngineSettings defaults(String namespace, String label, LockStrategy strategy) {
        return new EngineSettings(
                namespace,
                label,
                strategy,
                Duration.ofSeconds(30),
                null,
                Duration.ofSeconds(30),
                null,
                OnLost.INTERRUPT);
    }

    /**
     * Sets lease duration and heartbeat interval.
     *
     * @param lease how long a grant or renewal is good for
     * @param heartbeat how often to renew; null: a third of the time for which the shortest lease held is trusted
     * @return new settings
     */
    public EngineSettings withLease(Duration lease, @Nullable Duration heartbeat) {
        return new EngineSettings(namespace, label, strategy, lease, heartbeat, waitTimeout, maxHold, onLost);
    }

    static Duration checkLease(Duration lease) {
        if (lease.compareTo(LEAST_LEASE) < 0 || lease.compareTo(GREATEST_LEASE) > 0) {
            throw new IllegalArgumentException("A lease duration must be between " + LEAST_LEASE.toMillis() + " ms and "
                    + GREATEST_LEASE.toDays() + " days, but is " + lease);
        }
        return lease;
    }
}
