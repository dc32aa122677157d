package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseStore;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.StandbyServer;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Against a real hot standby, which grants advisory locks as readily as its primary does. */
class StandbyTests {

    private static final String NAMESPACE = "standby";
    private static final Duration LEASE = ReplicaStores.LEASE;
    private static final String KEYS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";

    private final List<LockEngine> engines = new ArrayList<>();
    private StandbyServer servers;
    private TestDatabase primary;
    private TestDatabase standby;

    @BeforeEach
    void start() {
        servers = StandbyServer.start();
        primary = servers.onPrimary();
        standby = servers.onStandby();
        primary.execute(LeaseSchema.ddl(ReplicaStores.TABLE));
        servers.catchUp();
    }

    @AfterEach
    void stop() {
        engines.forEach(LockEngine::close);
        if (servers != null) {
            servers.close();
        }
    }

    private static SessionFactory sessions(String url, TestDatabase login, String label) {
        return new SessionFactory(
                () -> ConnectionSpec.of(url, login.username(), login.password()),
                SessionSettings.of(NAMESPACE, label, JdbcTimeouts.of(LEASE)));
    }

    private LockEngine engine(LockStrategy strategy, TestDatabase database, String label) {
        return engine(strategy, database.url(), label);
    }

    private LockEngine engine(LockStrategy strategy, String url, String label) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        SessionFactory sessions = sessions(url, primary, label);
        JdbcTimeouts timeouts = JdbcTimeouts.of(LEASE);
        OwnConnections own = new OwnConnections(sessions, 2);
        LockStore store = strategy == LockStrategy.LEASE
                ? new LeaseStore(own, identity, ReplicaStores.TABLE, timeouts, Duration.ZERO)
                : new AdvisoryStore(
                        new LockSessions(sessions, LEASE),
                        own,
                        identity,
                        KeyDerivation.SHA256,
                        new AdvisorySettings(ReplicaStores.TABLE, LEASE, 100, timeouts));
        LockEngine engine = LockEngine.builder(
                        EngineSettings.defaults(NAMESPACE, label, strategy).withLease(LEASE, Duration.ofMillis(300)))
                .store(store)
                .build();
        engines.add(engine);
        return engine;
    }

    private static void assertRefused(LockEngine engine, String why) {
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> engine.tryAcquire(LockRequest.of("name")))
                .withMessageContaining(why);
    }

    @Test
    void onAStandbyNothingIsGrantedUntilItIsPromoted() throws Exception {
        LockEngine advisory = engine(LockStrategy.ADVISORY, standby, "A");
        LockEngine lease = engine(LockStrategy.LEASE, standby, "B");
        LockEngine onPrimary = engine(LockStrategy.ADVISORY, primary, "C");
        LockHandle held = onPrimary.tryAcquire(LockRequest.of("name")).orElseThrow();
        // What it is about: the standby's own lock table knows nothing of it.
        try (Connection direct = standby.direct()) {
            long key = held.key();
            assertThat(TestDatabase.text(direct, "SELECT pg_try_advisory_lock(?)", key))
                    .isEqualTo("t");
        }

        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> new LockSessions(sessions(standby.url(), standby, "D"), LEASE).open())
                .withMessageContaining("standby")
                .satisfies(e -> assertThat(e.getSQLState()).isEqualTo("25006"));
        assertRefused(advisory, "standby");
        assertRefused(lease, "read-only");
        try (Connection transaction = standby.direct()) {
            transaction.setAutoCommit(false);
            for (LockEngine engine : List.of(advisory, lease, onPrimary)) {
                assertThatExceptionOfType(LockStorageException.class)
                        .isThrownBy(() -> engine.tryAcquireInTransaction(transaction, "name"))
                        .withMessageContaining("standby");
            }
            assertThat(standby.number(KEYS)).isZero();
        }

        servers.failOver();

        await().ignoreExceptions().until(() -> {
            lease.tryAcquire(LockRequest.of("by lease")).orElseThrow().close();
            return true;
        });
        try (LockHandle lock = advisory.tryAcquire(LockRequest.of("name")).orElseThrow()) {
            assertThat(lease.tryAcquire(LockRequest.of("name"))).isEmpty();
            await().during(LEASE).atMost(LEASE.multipliedBy(2)).until(lock::isHeld);
        }
        try (Connection transaction = standby.direct()) {
            transaction.setAutoCommit(false);
            assertThat(advisory.tryAcquireInTransaction(transaction, "name")).isTrue();
            assertThat(lease.tryAcquireInTransaction(transaction, "name")).isTrue();
        }
    }

    @Test
    void aFailoverTakesAllAdvisoryLocksAndNewOnesAreGrantedByTheNewPrimary() {
        // The driver asks each server which of them is the primary.
        String either = "jdbc:postgresql://localhost:" + primary.server().port() + ",localhost:"
                + standby.server().port() + "/" + primary.name() + "?targetServerType=primary";
        LockEngine a = engine(LockStrategy.ADVISORY, either, "A");
        LockEngine b = engine(LockStrategy.ADVISORY, either, "B");
        LockHandle lost = a.tryAcquire(LockRequest.of("name")).orElseThrow();
        LockHandle otherLost = a.tryAcquire(LockRequest.of("other")).orElseThrow();

        long begun = System.nanoTime();
        servers.failOver();

        await().atMost(LEASE).until(() -> !lost.isHeld() && !otherLost.isHeld());
        await().ignoreExceptions()
                .atMost(Duration.ofSeconds(10))
                .until(() -> b.tryAcquire(LockRequest.of("name")).isPresent());
        System.out.println("granted by the new primary "
                + Duration.ofNanos(System.nanoTime() - begun).toMillis() + " ms after the failover began");
        assertThat(lost.release()).isFalse();
        assertThat(a.tryAcquire(LockRequest.of("name"))).isEmpty();
        assertThat(standby.number(KEYS)).isEqualTo(1);
    }
}
