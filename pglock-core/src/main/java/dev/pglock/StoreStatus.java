package dev.pglock;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How one replica's locks of one strategy are, as this process knows it: nothing was asked to tell it.
 *
 * @param strategy the strategy
 * @param held how many locks this replica holds
 * @param sessions how many sessions carry locks; always 0 unless the strategy is {@link LockStrategy#ADVISORY}
 * @param lost how many tenures were lost since the start
 * @param heartbeatAge how long ago the last heartbeat succeeded; null while nothing is held, when there is none to send
 * @param heartbeatInterval how often heartbeats are due; null while nothing is held
 * @param outage for how long the database has been failing; null: it does not, as far as anybody has asked
 */
public record StoreStatus(
        LockStrategy strategy,
        int held,
        int sessions,
        long lost,
        @Nullable Duration heartbeatAge,
        @Nullable Duration heartbeatInterval,
        @Nullable Duration outage) {

    /**
     * Whether the last good heartbeat is too long ago.
     *
     * @return true once it is older than two intervals: two thirds of the shortest lease, or less
     */
    public boolean isStale() {
        return heartbeatAge != null
                && heartbeatInterval != null
                && heartbeatAge.compareTo(heartbeatInterval.multipliedBy(2)) > 0;
    }
}
