package dev.pglock.engine;

import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * Ends the tenures whose trust or {@code maxHold} is over. It never touches the database, so no hanging statement can
 * keep it from its work.
 */
final class Watchdog extends Pulse {

    private final Collection<HeldLock> held;

    Watchdog(String name, Collection<HeldLock> held) {
        super(name);
        this.held = held;
    }

    @Override
    @Nullable
    Long beat(long now) {
        Long next = null;
        for (HeldLock lock : held) {
            lock.checkDeadline(now);
            long deadline = lock.deadline();
            if (deadline - now > 0 && (next == null || deadline - next < 0)) {
                next = deadline;
            }
        }
        return next;
    }
}
