package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.engine.Electorate.Replica;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("long")
class AdvisoryElectionTests extends DatabaseElectionContract {

    private static ReplicaStores stores;

    @BeforeAll
    static void createDatabase() {
        stores = ReplicaStores.withTable();
    }

    @AfterAll
    static void dropDatabase() throws Exception {
        stores.close();
    }

    @Test
    void whoStepsDownAndIsSucceededByNobodyAsksForASuccessorFewTimes() {
        Replica only = started("A");
        electorate.awaitLeader();
        int before = only.store.finds.get();
        assertThat(only.election.stop(Duration.ofSeconds(10))).isTrue();
        assertThat(only.store.finds.get() - before).isBetween(2, 40);
    }

    @Override
    ReplicaStores stores() {
        return stores;
    }

    @Override
    LockStore newStore(StoreIdentity identity, String url) {
        return stores.store(identity, url, Electorate.LEASE, 10);
    }
}
