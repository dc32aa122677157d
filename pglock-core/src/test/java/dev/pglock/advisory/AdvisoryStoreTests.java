package dev.pglock.advisory;

import dev.pglock.store.LockStore;
import dev.pglock.store.LockStoreContract;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class AdvisoryStoreTests extends LockStoreContract {

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
    protected LockStore newStore(StoreIdentity identity) {
        return stores.store(identity);
    }
}
