package dev.pglock.lease;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.pglock.jdbc.BorrowedConnections;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.store.LockStore;
import dev.pglock.store.LockStoreContract;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** On connections of an application that uses neither autocommit nor READ COMMITTED. */
class BorrowedLeaseStoreTests extends LockStoreContract {

    private static LeaseStores stores;
    private static HikariDataSource application;

    @BeforeAll
    static void createDatabase() {
        stores = LeaseStores.withTable();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(stores.database().url());
        config.setUsername(stores.database().username());
        config.setPassword(stores.database().password());
        config.setAutoCommit(false);
        config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
        application = new HikariDataSource(config);
    }

    @AfterAll
    static void dropDatabase() throws Exception {
        application.close();
        stores.close();
    }

    @Override
    protected LockStore newStore(StoreIdentity identity) {
        JdbcTimeouts timeouts = JdbcTimeouts.of(LEASE);
        return new LeaseStore(
                new BorrowedConnections(application, timeouts),
                identity,
                LeaseStores.TABLE,
                timeouts,
                Duration.ofDays(7));
    }
}
