package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.RunOutcome;
import dev.pglock.testing.Concurrently;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Replicas that fight over a few names, whatever their strategies: one holder at a time, and fences that only grow. */
public final class Race {

    private final String namespace;
    private final Duration lease;
    private final List<Contested> names = new ArrayList<>();
    private final AtomicInteger attempts = new AtomicInteger();
    private final AtomicInteger grants = new AtomicInteger();

    public Race(String namespace, Duration lease, int names) {
        this.namespace = namespace;
        this.lease = lease;
        for (int i = 0; i < names; i++) {
            this.names.add(new Contested("name " + i));
        }
    }

    /** What is known of a name while it is held: by whom, and with which fence it was held before. */
    private static final class Contested {

        private final String name;
        private final AtomicReference<String> holder = new AtomicReference<>();
        private long lastFence;
        private Instant lastAcquired = Instant.EPOCH;

        Contested(String name) {
            this.name = name;
        }

        void enter(String who, ClaimAnswer.Granted lock) {
            assertThat(holder.getAndSet(who)).as("holder besides " + who).isNull();
            assertThat(lock.fence()).isGreaterThan(lastFence);
            assertThat(lock.acquiredAt()).isAfter(lastAcquired);
            lastFence = lock.fence();
            lastAcquired = lock.acquiredAt();
        }

        void leave(String who) {
            assertThat(holder.getAndSet(null)).isEqualTo(who);
        }
    }

    /** A replica, with the engine's part: a store is not asked for a name that its own process holds or asks for. */
    private record Replica(LockStore store, Set<String> local) {}

    /** Threads take turns on the replicas. */
    public Race run(List<? extends LockStore> stores, int threads, int atLeast) throws InterruptedException {
        List<Replica> replicas = stores.stream()
                .map(store -> new Replica(store, ConcurrentHashMap.newKeySet()))
                .toList();
        Concurrently.run(threads, thread -> () -> {
            while (attempts.get() < atLeast) {
                Contested contested = names.get(ThreadLocalRandom.current().nextInt(names.size()));
                attempt(replicas.get(thread % replicas.size()), contested, "thread " + thread);
            }
            return null;
        });
        return this;
    }

    private void attempt(Replica replica, Contested contested, String who) {
        if (!replica.local().add(contested.name)) {
            return;
        }
        attempts.incrementAndGet();
        long key = KeyDerivation.SHA256.key(namespace, contested.name);
        try {
            if (replica.store().claim(new Claim(contested.name, key, lease, null, null))
                    instanceof ClaimAnswer.Granted lock) {
                grants.incrementAndGet();
                contested.enter(who, lock);
                contested.leave(who);
                assertThat(replica.store()
                                .release(new Release(
                                        contested.name,
                                        key,
                                        lock.fence(),
                                        RunOutcome.SUCCEEDED,
                                        null,
                                        null,
                                        null,
                                        false)))
                        .isTrue();
            }
        } finally {
            replica.local().remove(contested.name);
        }
    }

    public int grants() {
        return grants.get();
    }
}
