package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.Race;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
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

    @Test
    void twelveThreadsOnThreeReplicasNeverHoldOneOfFiveNamesTwice() throws Exception {
        List<LeaseStore> replicas =
                IntStream.range(0, 3).mapToObj(this::replica).toList();

        Race race = new Race(LeaseStores.NAMESPACE, LONG, 5).run(replicas, 12, 20_000);

        assertThat(race.grants()).isGreaterThan(1000);
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
            List<List<ClaimAnswer.Granted>> grants = Concurrently.run(8, i -> () -> {
                long end = System.nanoTime() + Duration.ofMillis(150).toNanos();
                while (System.nanoTime() < end) {
                    ClaimAnswer answer = replicas.get(i).claim(LeaseStores.claim("name", Duration.ofMillis(300)));
                    if (answer instanceof ClaimAnswer.Granted granted) {
                        return List.of(granted);
                    }
                }
                return List.of();
            });
            // On a machine that stands still for a while a round may see more than one, one after the other.
            List<ClaimAnswer.Granted> inOrder = grants.stream()
                    .flatMap(List::stream)
                    .sorted(Comparator.comparing(ClaimAnswer.Granted::acquiredAt))
                    .toList();
            for (int i = 1; i < inOrder.size(); i++) {
                assertThat(inOrder.get(i).acquiredAt())
                        .isAfterOrEqualTo(inOrder.get(i - 1).expiresAt());
            }
            await().until(() -> database.isTrue("SELECT expires_at <= clock_timestamp() FROM pglock_lease"));
        }
    }

    @RepeatedTest(2)
    void aHundredFreshNamesHaveOneWinnerEachAndNothingIsRolledBack() throws Exception {
        List<LeaseStore> replicas =
                IntStream.range(0, 20).mapToObj(this::replica).toList();
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
