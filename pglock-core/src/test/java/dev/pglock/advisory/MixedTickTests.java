package dev.pglock.advisory;

import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickContract;
import dev.pglock.testing.ReplicaStores;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** Replica A keeps the lock by a lease, replica B on its session: what they remember is the same. */
class MixedTickTests extends TickContract {

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
        return identity.label().equals("A") ? stores.lease(identity) : stores.store(identity);
    }
}
