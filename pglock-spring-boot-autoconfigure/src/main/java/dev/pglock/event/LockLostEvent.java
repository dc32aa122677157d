package dev.pglock.event;

import dev.pglock.LockStrategy;
import dev.pglock.LossReason;

/**
 * This replica has lost a lock. Published on a thread of the registry, one event after the other.
 *
 * @param name the lock's name
 * @param strategy by which strategy it was held
 * @param fence the fence of the tenure that was lost
 * @param reason why
 * @param replica the label of this replica
 */
public record LockLostEvent(String name, LockStrategy strategy, long fence, LossReason reason, String replica) {}
