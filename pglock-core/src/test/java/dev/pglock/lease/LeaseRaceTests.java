package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

class LeaseRaceTests {

    private static final Duration LONG = Duration.ofSeconds(30);

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    /** What is known of a name while it is held: by whom, and with which fence it was held before. */
    private static final class Witness {

        private final AtomicReference<String> holder = new AtomicReference<>();
        private long lastFence;
        private Instant lastAcquired = Instant.EPOCH;

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

    @Test
    void twelveThreadsOnThreeReplicasNeverHoldOneOfFiveNamesTwice() throws Exception {
        int threads = 12;
        int attempts = 20_000 / threads;
        List<String> names = IntStream.range(0, 5).mapToObj(i -> "name " + i).toList();
        Map<String, Witness> witnesses = new ConcurrentHashMap<>();
        names.forEach(name -> witnesses.put(name, new Witness()));
        List<LeaseStore> replicas =
                IntStream.range(0, 3).mapToObj(this::replica).toList();
        // The engine's part: a store is not asked for a name that its own process holds or asks for.
        List<Set<String>> local =
                List.of(ConcurrentHashMap.newKeySet(), ConcurrentHashMap.newKeySet(), ConcurrentHashMap.newKeySet());
        AtomicInteger grants = new AtomicInteger();

        Concurrently.run(threads, thread -> () -> {
            int replica = thread % 3;
            String who = "thread " + thread;
            for (int i = 0; i < attempts; i++) {
                String name = names.get(ThreadLocalRandom.current().nextInt(names.size()));
                if (!local.get(replica).add(name)) {
                    continue;
                }
                try {
                    if (replicas.get(replica).claim(LeaseStores.claim(name, LONG))
                            instanceof ClaimAnswer.Granted lock) {
                        grants.incrementAndGet();
                        witnesses.get(name).enter(who, lock);
                        witnesses.get(name).leave(who);
                        assertThat(replicas.get(replica).release(LeaseStores.release(name, lock)))
                                .isTrue();
                    }
                } finally {
                    local.get(replica).remove(name);
                }
            }
            return null;
        });

        assertThat(grants.get()).isGreaterThan(1000);
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE holder IS NULL"))
                .isEqualTo(5);
    }

    private LeaseStore replica(int i) {
        return new LeaseStore(
                stores.connections("replica " + i, stores.spec(database.url()), 5),
                StoreIdentity.random(LeaseStores.NAMESPACE, "replica " + i),
                LeaseStores.TABLE,
                dev.pglock.jdbc.JdbcTimeouts.of(LONG),
                Duration.ZERO);
    }

    @Test
    void anExpiredLockHasOneSuccessor() throws Exception {
        List<LeaseStore> replicas =
                IntStream.range(0, 8).mapToObj(this::replica).toList();
        replicas.get(0).claim(LeaseStores.claim("name", Duration.ofMillis(100)));

        for (int round = 0; round < 20; round++) {
            List<Integer> grants = Concurrently.run(8, i -> () -> {
                int granted = 0;
                long end = System.nanoTime() + Duration.ofMillis(150).toNanos();
                while (System.nanoTime() < end) {
                    // Long enough to last until the round is over, short enough not to last until the next one is
                    Duration lease = Duration.ofMillis(300);
                    if (replicas.get(i).claim(LeaseStores.claim("name", lease)) instanceof ClaimAnswer.Granted) {
                        return granted + 1;
                    }
                }
                return granted;
            });
            assertThat(Collections.frequency(grants, 1)).isLessThanOrEqualTo(1);
            await().until(() -> database.isTrue("SELECT expires_at <= clock_timestamp() FROM pglock_lease"));
        }
    }

    @RepeatedTest(2)
    void aHundredFreshNamesHaveOneWinnerEachAndNothingIsRolledBack() throws Exception {
        List<LeaseStore> replicas = IntStream.range(0, 20)
                .mapToObj(i -> stores.store("replica " + i))
                .toList();
        long rollbacks = rollbacks();

        List<Integer> won = Concurrently.run(20, i -> () -> {
            int grants = 0;
            for (int name = 0; name < 100; name++) {
                if (replicas.get(i).claim(LeaseStores.claim("name " + name, LONG)) instanceof ClaimAnswer.Granted) {
                    grants++;
                }
            }
            return grants;
        });

        assertThat(won.stream().mapToInt(Integer::intValue).sum()).isEqualTo(100);
        // The server counts a session's last doings when it ends.
        replicas.forEach(LeaseStore::close);
        await().until(() ->
                database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == 1);
        assertThat(rollbacks()).isEqualTo(rollbacks);
    }

    private long rollbacks() {
        return database.number("SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()");
    }
}
