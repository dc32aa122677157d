package dev.pglock.advisory;

import dev.pglock.store.KeyDerivation;
import dev.pglock.store.TickGuard;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a tick where there is no table: a second key, which the lock session keeps after the lock was given back.
 * While it does, nobody else is granted the tick.
 *
 * @param key of lock and tick; of lock and trigger where the grant decides the tick
 * @param kept how long it is kept from the grant on; from the end of the run if {@code afterEnd}
 * @param early how much sooner the session that keeps it may be granted the next one
 * @param afterEnd whether it is the end of the run that counts
 */
record TickKey(long key, Duration kept, Duration early, boolean afterEnd) {

    /** What names cannot contain: such a key is no other lock's. */
    private static final String SEPARATOR = "\0";

    private static final long UNTIL_THE_END = Duration.ofDays(365).toNanos();

    /** Null: there is no tick. */
    static @Nullable TickKey of(String name, TickGuard tick, KeyDerivation keys, String namespace) {
        Duration reach = tick.reach();
        if (tick.tick() != null && tick.slack() != null) {
            // Twice the gap: others may ask for it half a gap later than we did, and be late.
            long key = keys.key(namespace, name + SEPARATOR + tick.trigger() + SEPARATOR + tick.tick());
            return new TickKey(key, tick.slack().multipliedBy(2), Duration.ZERO, false);
        }
        if (reach == null) {
            return null;
        }
        long key = keys.key(namespace, name + SEPARATOR + (tick.trigger() == null ? "" : tick.trigger()));
        return tick.period() == null
                ? new TickKey(key, reach, Duration.ZERO, true)
                : new TickKey(key, tick.period(), tick.period().minus(reach), false);
    }

    /**
     * Until when the key is kept after a grant: a rate stays in its phase.
     *
     * @param kept until when it was kept for the last one; null: it was not
     * @param now {@link System#nanoTime()}
     */
    long keptUntil(@Nullable Long kept, long now) {
        if (afterEnd) {
            return now + UNTIL_THE_END;
        }
        long until = (kept == null ? now : kept) + this.kept.toNanos();
        return until - now > 0 ? until : now + this.kept.toNanos();
    }

    /** Until when the key is kept after the run has ended at that moment. */
    long keptAfter(long end) {
        return end + Math.max(0, kept.toNanos());
    }
}
