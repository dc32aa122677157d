package dev.pglock.local;

import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;

/**
 * The memory in which {@link LocalStore}s keep their locks: what the table is to the lease. Stores that share one exclude
 * each other, like replicas that share a database. Thread-safe.
 */
public final class LocalSpace {

    private final ReentrantLock guard = new ReentrantLock();
    private final Map<Key, LocalRow> rows = new HashMap<>();
    private final long originNanos = System.nanoTime();
    private final Instant origin = Instant.now();
    private long lastFence;

    /** Creates an empty space. */
    public LocalSpace() {}

    /** A row's place. */
    record Key(String namespace, String name) {}

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

    /** To be called inside {@link #atomically}. */
    long nextFence() {
        return ++lastFence;
    }
}
