package dev.pglock.lease;

import dev.pglock.store.LockStore;
import dev.pglock.store.RowStoreContract;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PgBouncer;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** The whole contract behind a PgBouncer in transaction mode. */
class LeaseBehindPoolerTests extends RowStoreContract {

    private static LeaseStores stores;
    private static PgBouncer pooler;

    @BeforeAll
    static void start() {
        stores = LeaseStores.withTable();
        pooler = PgBouncer.before(stores.database().server(), PgBouncer.Mode.TRANSACTION);
    }

    @AfterAll
    static void stop() throws Exception {
        stores.close();
        if (pooler != null) {
            pooler.close();
        }
    }

    @Override
    protected LockStore newStore(StoreIdentity identity) {
        return stores.store(
                identity, stores.spec(pooler.url(stores.database())), LeaseStores.TABLE, Duration.ofDays(7));
    }
}
