package dev.pglock.engine;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockHandle;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Exclusion inside this process, decided before the database is asked. Whoever has the permit of a name may ask; the
 * others queue, and the permit is handed to them in order. A permit is kept for the whole tenure and until its body has
 * ended, lost or not. A name that nobody uses takes no memory.
 */
final class LocalTable {

    /** Held for a few instructions only, never while anybody waits for anything. */
    private final ReentrantLock guard = new ReentrantLock();

    private final Map<String, Slot> slots = new HashMap<>();

    /** One name whose permit is out. */
    private static final class Slot {

        private final Deque<Waiter> queue = new ArrayDeque<>(1);
        private @Nullable LockHandle holder;
    }

    /** One thread in a queue. */
    private final class Waiter {

        private final Condition turn = guard.newCondition();
        private boolean handedOver;
    }

    /** Takes the permit if it is free. */
    @Nullable
    Permit tryEnter(String name) {
        guard.lock();
        try {
            return slots.putIfAbsent(name, new Slot()) == null ? new Permit(name) : null;
        } finally {
            guard.unlock();
        }
    }

    /**
     * Queues for the permit.
     *
     * @param accepting asked again after {@link #wakeAll}
     * @return null if the time is over or the registry is stopping
     */
    @Nullable
    Permit enter(String name, Deadline deadline, BooleanSupplier accepting) throws InterruptedException {
        guard.lockInterruptibly();
        try {
            Slot slot = slots.get(name);
            if (slot == null) {
                slots.put(name, new Slot());
                return new Permit(name);
            }
            Waiter waiter = new Waiter();
            slot.queue.addLast(waiter);
            try {
                long left = deadline.remaining(Long.MAX_VALUE);
                while (!waiter.handedOver && left > 0 && accepting.getAsBoolean()) {
                    left = waiter.turn.awaitNanos(left);
                }
            } catch (InterruptedException e) {
                if (waiter.handedOver) {
                    passOn(name);
                }
                throw e;
            } finally {
                slot.queue.remove(waiter);
            }
            return waiter.handedOver ? new Permit(name) : null;
        } finally {
            guard.unlock();
        }
    }

    /** Lets every queued thread look whether the registry is still taking locks. */
    void wakeAll() {
        guard.lock();
        try {
            slots.values().forEach(slot -> slot.queue.forEach(waiter -> waiter.turn.signal()));
        } finally {
            guard.unlock();
        }
    }

    /** Why a name whose permit was not to be had is denied. */
    Denial denial(String name, String label) {
        guard.lock();
        try {
            Slot slot = slots.get(name);
            LockHandle holder = slot == null ? null : slot.holder;
            return holder == null
                    ? Denial.of(name, DenialReason.KEY_BUSY)
                    : new Denial(name, DenialReason.HELD, label, holder.fence(), null);
        } finally {
            guard.unlock();
        }
    }

    boolean isIdle() {
        guard.lock();
        try {
            return slots.isEmpty();
        } finally {
            guard.unlock();
        }
    }

    /** To be called under the guard. */
    private void passOn(String name) {
        Slot slot = slots.get(name);
        if (slot == null) {
            return;
        }
        slot.holder = null;
        Waiter next = slot.queue.pollFirst();
        if (next == null) {
            slots.remove(name);
        } else {
            next.handedOver = true;
            next.turn.signal();
        }
    }

    /** The right to ask the database for a name, and to hold it. */
    final class Permit {

        private final String name;

        private Permit(String name) {
            this.name = name;
        }

        void heldBy(LockHandle lock) {
            guard.lock();
            try {
                Slot slot = slots.get(name);
                if (slot != null) {
                    slot.holder = lock;
                }
            } finally {
                guard.unlock();
            }
        }

        /** To be called exactly once. */
        void giveBack() {
            guard.lock();
            try {
                passOn(name);
            } finally {
                guard.unlock();
            }
        }
    }
}
