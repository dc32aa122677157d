package dev.pglock.engine;

import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;

@Tag("long")
@Tag("thorough")
class AdvisoryWithoutTableElectionTests extends DatabaseElectionContract {

    private static ReplicaStores stores;

    @BeforeAll
    static void createDatabase() {
        stores = ReplicaStores.withoutTable();
    }

    @AfterAll
    static void dropDatabase() throws Exception {
        stores.close();
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
