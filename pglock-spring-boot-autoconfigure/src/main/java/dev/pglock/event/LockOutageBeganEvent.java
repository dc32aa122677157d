package dev.pglock.event;

import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;

/**
 * The database of the locks began to fail: nothing that needs a lock runs on this replica until it works again. Published
 * once per outage, on a thread of the registry.
 *
 * @param strategy the strategy whose locks are affected
 * @param cause the first failure
 * @param replica the label of this replica
 */
public record LockOutageBeganEvent(LockStrategy strategy, LockStorageException cause, String replica) {}
