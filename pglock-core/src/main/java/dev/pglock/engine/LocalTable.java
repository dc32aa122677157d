package dev.pglock.engine;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockHandle;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Exclusion inside this process, decided before the database is asked. Whoever has the permit of a name may ask; the
 * others queue in order. A permit is kept for the whole tenure and until its body has ended, lost or not. A name that
 * nobody uses takes no memory.
 */
final class LocalTable {

    /** How long a queued thread sleeps at most before it looks whether the registry is stopping. */
    private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private final ConcurrentMap<String, Slot> slots = new ConcurrentHashMap<>();
    private final AtomicInteger taken = new AtomicInteger();

    /** Takes the permit if it is free. */
    @Nullable Permit tryEnter(String name) {
        Slot slot = use(name);
        if (slot.permit.tryAcquire()) {
            return new Permit(name, slot);
        }
        leave(name);
        return null;
    }

    /**
     * Queues for the permit.
     *
     * @return null if the time is over or the registry is stopping
     */
    @Nullable Permit enter(String name, Deadline deadline, BooleanSupplier accepting) throws InterruptedException {
        Slot slot = use(name);
        boolean entered = false;
        try {
            do {
                entered = slot.permit.tryAcquire(deadline.remaining(SLICE_NANOS), TimeUnit.NANOSECONDS);
            } while (!entered && !deadline.isOver() && accepting.getAsBoolean());
            return entered ? new Permit(name, slot) : null;
        } finally {
            if (!entered) {
                leave(name);
            }
        }
    }

    /** Why a name whose permit was not to be had is denied. */
    Denial denial(String name, String label) {
        Slot slot = slots.get(name);
        LockHandle holder = slot == null ? null : slot.holder;
        return holder == null
                ? Denial.of(name, DenialReason.KEY_BUSY)
                : new Denial(name, DenialReason.HELD, label, holder.fence(), null);
    }

    boolean isIdle() {
        return taken.get() == 0;
    }

    private Slot use(String name) {
        return slots.compute(name, (key, slot) -> {
            Slot used = slot == null ? new Slot() : slot;
            used.users++;
            return used;
        });
    }

    private void leave(String name) {
        slots.computeIfPresent(name, (key, slot) -> --slot.users == 0 ? null : slot);
    }

    /** One name in use. */
    private static final class Slot {

        /** Changed only inside the map's compute methods, which are atomic per key. */
        private int users;

        private final Semaphore permit = new Semaphore(1, true);
        private volatile @Nullable LockHandle holder;
    }

    /** The right to ask the database for a name, and to hold it. */
    final class Permit {

        private final String name;
        private final Slot slot;

        private Permit(String name, Slot slot) {
            this.name = name;
            this.slot = slot;
            taken.incrementAndGet();
        }

        void heldBy(LockHandle lock) {
            slot.holder = lock;
        }

        /** To be called exactly once. */
        void giveBack() {
            slot.holder = null;
            slot.permit.release();
            leave(name);
            taken.decrementAndGet();
        }
    }
}
