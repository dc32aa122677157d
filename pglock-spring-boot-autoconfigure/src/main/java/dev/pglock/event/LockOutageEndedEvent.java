package dev.pglock.event;

import dev.pglock.LockStrategy;
import java.time.Duration;

/**
 * The database of the locks works again. Published once per outage, on a thread of the registry.
 *
 * @param strategy the strategy whose locks were affected
 * @param lasted how long it did not work, from the first failure to the first success
 * @param replica the label of this replica
 */
public record LockOutageEndedEvent(LockStrategy strategy, Duration lasted, String replica) {}
