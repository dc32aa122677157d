package dev.pglock.engine;

import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class AdvisoryRegistryTests extends LockRegistryContract {

    private static ReplicaStores stores;

    @BeforeAll
    static void createDatabase() {
        stores = ReplicaStores.withTable();
    }

    @AfterAll
    static void dropDatabase() throws Exception {
        stores.close();
    }

    @Override
    LockStore newStore(StoreIdentity identity, Duration lease) {
        return stores.store(identity);
    }

    @Override
    WakeUps newWakeUps(String label) {
        return new NotifiedWakeUps(stores.sessions(
                StoreIdentity.random("wake-ups", label), stores.database().url(), LEASE));
    }
}
