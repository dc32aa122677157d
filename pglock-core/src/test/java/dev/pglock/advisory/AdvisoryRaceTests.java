package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.store.LockStore;
import dev.pglock.store.Race;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class AdvisoryRaceTests {

    private static final Duration LONG = Duration.ofSeconds(30);
    private static final String NAMESPACE = "race";

    private ReplicaStores stores = ReplicaStores.withTable();

    @AfterEach
    void close() throws Exception {
        assertThat(stores.keysHeld()).isZero();
        stores.close();
    }

    private LockStore replica(int i, boolean advisory) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "replica " + i);
        return advisory
                ? stores.store(identity, stores.database().url(), LONG, 100)
                : stores.lease(identity, stores.database().url(), LONG, 4);
    }

    private Race race(List<LockStore> replicas) throws InterruptedException {
        return new Race(NAMESPACE, LONG, 5).run(replicas, 12, 24_000);
    }

    @Test
    void advisoryReplicasNeverHoldOneOfFiveNamesTwice() throws Exception {
        Race race = race(IntStream.range(0, 6).mapToObj(i -> replica(i, true)).toList());

        assertThat(race.grants()).isGreaterThan(1000);
        assertThat(stores.database().number("SELECT count(*) FROM pglock_lease"))
                .as("rows written")
                .isZero();
    }

    @Test
    void withoutATableNeither() throws Exception {
        stores.close();
        stores = ReplicaStores.withoutTable();

        assertThat(race(IntStream.range(0, 6).mapToObj(i -> replica(i, true)).toList())
                        .grants())
                .isGreaterThan(1000);
    }

    @Test
    void halfOfThemByLeaseAndHalfByAdvisoryNeverHoldOneOfFiveNamesTwice() throws Exception {
        List<LockStore> replicas =
                IntStream.range(0, 6).mapToObj(i -> replica(i, i % 2 == 0)).toList();

        assertThat(race(replicas).grants()).isGreaterThan(1000);
    }
}
