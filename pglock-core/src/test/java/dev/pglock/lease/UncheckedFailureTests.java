package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.BorrowedConnections;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Whoever fetches credentials may fail with whatever is not checked. It is a failure to reach the database all the same. */
@Isolated("it reads the whole log")
class UncheckedFailureTests {

    private final LeaseStores stores = LeaseStores.withTable();
    private volatile boolean vaultIsAway;

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private void unlessAway() {
        if (vaultIsAway) {
            throw new IllegalStateException("the vault is away");
        }
    }

    @Test
    void credentialsThatCannotBeFetchedAreOneOutageAndNoDefect() throws Exception {
        Supplier<ConnectionSpec> spec = stores.spec(stores.database().url());
        assertOneOutage(stores.connections(
                "A",
                () -> {
                    unlessAway();
                    return spec.get();
                },
                2));
    }

    @Test
    void theSameOfAPoolThatLends() throws Exception {
        DataSource pool = stores.database().dataSource();
        DataSource lender = (DataSource) Proxy.newProxyInstance(
                UncheckedFailureTests.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> {
                    unlessAway();
                    try {
                        return method.invoke(pool, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getTargetException();
                    }
                });
        assertOneOutage(new BorrowedConnections(lender, JdbcTimeouts.of(LeaseStores.LEASE)));
    }

    private void assertOneOutage(ConnectionSource connections) {
        LeaseStore store = new LeaseStore(
                connections,
                StoreIdentity.random(LeaseStores.NAMESPACE, "A"),
                LeaseStores.TABLE,
                JdbcTimeouts.of(LeaseStores.LEASE),
                Duration.ofDays(7));
        List<String> told = new CopyOnWriteArrayList<>();
        try (CapturedLog log = CapturedLog.of("dev.pglock");
                LockEngine replica = LockEngine.builder(
                                EngineSettings.defaults(LeaseStores.NAMESPACE, "A", LockStrategy.LEASE))
                        .store(store)
                        .listener(listener(told))
                        .build()) {
            vaultIsAway = true;
            for (int tick = 0; tick < 5; tick++) {
                assertThatExceptionOfType(LockStorageException.class)
                        .isThrownBy(() -> replica.tryAcquire(LockRequest.of("name")))
                        .withMessageContaining("the vault is away");
            }
            vaultIsAway = false;
            replica.tryAcquire(LockRequest.of("name")).orElseThrow().close();

            await().untilAsserted(() -> assertThat(told).containsExactly("began", "ended"));
            assertThat(log.messages())
                    .filteredOn(line -> line.contains("vault"))
                    .singleElement()
                    .asString()
                    .startsWith("WARN The database of the lease locks fails");
        }
    }

    private static LockListener listener(List<String> told) {
        return new LockListener() {
            @Override
            public void outageBegan(LockStrategy strategy, LockStorageException cause) {
                told.add("began");
            }

            @Override
            public void outageEnded(LockStrategy strategy, Duration lasted) {
                told.add("ended");
            }
        };
    }
}
