package dev.pglock.lease;

import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class LeaseTickTests extends TickContract {

    private static LeaseStores stores;

    @BeforeAll
    static void createDatabase() {
        stores = LeaseStores.withTable();
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
