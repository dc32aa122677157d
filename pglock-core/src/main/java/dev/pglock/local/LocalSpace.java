package dev.pglock.local;

import dev.pglock.store.WakeUps;
import java.time.Clock;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The memory in which {@link LocalStore}s keep their locks: what the table is to the lease. Stores that share one exclude
 * each other, like replicas that share a database. Thread-safe.
 */
public final class LocalSpace {

    private final ReentrantLock guard = new ReentrantLock();
    private final Map<Key, LocalRow> rows = new HashMap<>();
    private final long originNanos = System.nanoTime();
    private final Instant origin = Instant.now();
    private final Map<Integer, Set<WakeUps.Waiter>> waiters = new ConcurrentHashMap<>();
    private final @Nullable Clock tickClock;
    private long lastFence;

    /** Creates an empty space. */
    public LocalSpace() {
        this.tickClock = null;
    }

    /**
     * Creates an empty space for tests of schedules, whose ticks are told by a clock that the test sets. Leases, holds and
     * what is told of locks go by real time as ever: a clock that leaps takes nobody's lock away.
     *
     * @param tickClock the clock of the scheduler
     */
    public LocalSpace(Clock tickClock) {
        this.tickClock = tickClock;
    }

    /** Forgets what has run: ticks, versions, holds, pauses. Locks that are held stay so. */
    public void forget() {
        atomically(all -> {
            Instant now = now();
            all.values().removeIf(row -> !row.isLive(now));
            all.values().forEach(LocalRow::forget);
            return true;
        });
    }

    /** A row's place. */
    record Key(String namespace, String name) {}

    /**
     * Wakes whoever waits for a lock of this space as soon as it is released.
     *
     * @return to be shared by the registries on it
     */
    public WakeUps wakeUps() {
        return new WakeUps() {
            @Override
            public boolean areOn() {
                return true;
            }

            @Override
            public Watch watch(long key, Waiter waiter) {
                int waitKey = WakeUps.waitKey(key);
                waiters.compute(waitKey, (same, all) -> {
                    Set<Waiter> joined = all == null ? ConcurrentHashMap.newKeySet() : all;
                    joined.add(waiter);
                    return joined;
                });
                waiter.watched();
                return () -> leave(waitKey, waiter);
            }

            @Override
            public void close() {
                // Others may go on.
            }
        };
    }

    private void leave(int waitKey, WakeUps.Waiter waiter) {
        waiters.computeIfPresent(waitKey, (key, all) -> {
            boolean ignored = all.remove(waiter);
            return all.isEmpty() ? null : all;
        });
    }

    /** Not to be called inside {@link #atomically}. */
    void tell(long key) {
        waiters.getOrDefault(WakeUps.waitKey(key), Set.of()).forEach(WakeUps.Waiter::released);
    }

    /** Does the work while nobody else sees the rows: the transaction of this store. */
    <T> T atomically(Function<Map<Key, LocalRow>, T> work) {
        guard.lock();
        try {
            return work.apply(rows);
        } finally {
            guard.unlock();
        }
    }

    /** This space's clock: what {@code clock_timestamp()} is to the server. It never goes back. */
    Instant now() {
        return origin.plusNanos(System.nanoTime() - originNanos);
    }

    /** What time it is for schedules. */
    Instant tickTime() {
        return tickClock == null ? now() : tickClock.instant();
    }

    /** To be called inside {@link #atomically}. */
    long nextFence() {
        return ++lastFence;
    }
}
