package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockInfo;
import dev.pglock.LockRefusedException;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who holds what: for claimants, for operators, over both strategies, and beside others who use keys. */
class KeyHoldersTests {

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final List<LockEngine> engines = new ArrayList<>();
    private final LockEngine a = engine("orders", "A");
    private final LockEngine b = engine("orders", "B");

    @AfterEach
    void close() throws Exception {
        engines.forEach(LockEngine::close);
        stores.close();
    }

    /** With both strategies, advisory by default. */
    private LockEngine engine(String namespace, String label) {
        StoreIdentity identity = StoreIdentity.random(namespace, label);
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(namespace, label, LockStrategy.ADVISORY)
                        .withLease(ReplicaStores.LEASE, Duration.ofMillis(300)))
                .store(stores.store(identity))
                .store(stores.lease(identity))
                .build();
        engines.add(engine);
        return engine;
    }

    private static LockHandle taken(LockEngine engine, LockRequest request) {
        return engine.tryAcquire(request).orElseThrow();
    }

    private static Denial denial(LockEngine engine, String name) {
        return ((LockAttempt.Denied) engine.attempt(LockRequest.of(name))).denial();
    }

    @Test
    void bothStrategiesAreFoundWithTheirHolders() {
        taken(a, LockRequest.of("advisory"));
        taken(a, LockRequest.of("advisory with data").data("50 %"));
        taken(b, LockRequest.of("lease").strategy(LockStrategy.LEASE));
        taken(b, LockRequest.of("free").strategy(LockStrategy.LEASE)).close();

        assertThat(a.findAll())
                .extracting(info -> info.name() + " " + info.strategy() + " " + info.state() + " " + info.holder())
                .contains("advisory ADVISORY HELD A", "advisory with data ADVISORY HELD A", "lease LEASE HELD B");
        LockInfo seen = b.find("advisory with data").orElseThrow();
        assertThat(seen.holder()).isEqualTo("A");
        assertThat(seen.data()).isEqualTo("50 %");
        assertThat(a.find("free").orElseThrow().state()).isEqualTo(LockState.FREE);
        assertThat(a.find("lease").orElseThrow().strategy()).isEqualTo(LockStrategy.LEASE);
        assertThat(denial(a, "lease").holder()).isEqualTo("B");
    }

    @Test
    void aForeignSessionThatHoldsTheKeyIsNamed() throws SQLException {
        try (Connection direct = database.direct();
                Statement statement = direct.createStatement()) {
            statement.execute("SET application_name = 'psql of ops'");
            statement.execute("SELECT pg_advisory_lock(" + KeyDerivation.SHA256.key("orders", "name") + ")");
            // The key space of two integers is another one.
            statement.execute("SELECT pg_advisory_lock("
                    + (int) (KeyDerivation.SHA256.key("orders", "other") >> 32) + ", "
                    + (int) KeyDerivation.SHA256.key("orders", "other") + ")");

            Denial denial = denial(a, "name");

            assertThat(denial.reason()).isEqualTo(DenialReason.KEY_BUSY);
            assertThat(denial.describe()).contains("psql of ops");
            assertThat(a.find("name").orElseThrow().holder()).contains("psql of ops");
            taken(a, LockRequest.of("other")).close();
        }
    }

    @Test
    void namespacesExcludeEachOtherNot() {
        LockEngine other = engine("billing", "C");
        taken(a, LockRequest.of("name"));

        taken(other, LockRequest.of("name"));

        assertThat(other.findAll()).extracting(LockInfo::holder).containsExactly("C");
    }

    @Test
    void byForceTheWholeSessionGoesAndOnlyAtOnce() {
        LockHandle one = taken(a, LockRequest.of("one").data("x"));
        LockHandle two = taken(a, LockRequest.of("two").data("x"));

        assertThatExceptionOfType(LockRefusedException.class)
                .isThrownBy(() -> b.forceRelease("one", "the test says so"))
                .withMessageContaining("one")
                .withMessageContaining("two")
                .withMessageContaining("now");
        assertThat(one.isHeld()).isTrue();

        assertThat(b.forceRelease("one", "the test says so", true)).isTrue();

        taken(b, LockRequest.of("one"));
        taken(b, LockRequest.of("two"));
        await().atMost(Duration.ofSeconds(1)).until(() -> !one.isHeld() && !two.isHeld());
        assertThat(b.forceRelease("never seen", "the test says so", true)).isFalse();
    }

    /** The server keeps neither, and the row may be that of an earlier tenure. */
    @Test
    void ofAnotherReplicasLockTheHolderIsKnownButNotItsFenceOrSinceWhen() {
        taken(a, LockRequest.of("earlier").data("x")).close();
        LockHandle own = taken(a, LockRequest.of("earlier"));

        LockInfo seen = b.find("earlier").orElseThrow();
        assertThat(seen.holder()).isEqualTo("A");
        assertThat(seen.state()).isEqualTo(LockState.HELD);
        assertThat(seen.fence()).isNull();
        assertThat(seen.acquiredAt()).isNull();
        assertThat(a.find("earlier").orElseThrow().fence()).isEqualTo(own.fence());
        assertThat(a.find("earlier").orElseThrow().acquiredAt()).isEqualTo(own.acquiredAt());
    }

    /** Whoever claims a lease has the key for the length of a statement, on a connection that others use as well. */
    @Test
    void byForceNobodyLosesTheSessionOnWhichHeIsJustClaiming() throws Exception {
        long key = KeyDerivation.SHA256.key("orders", "name");
        try (Connection claimant = database.direct();
                Statement statement = claimant.createStatement()) {
            claimant.setAutoCommit(false);
            statement.execute("SELECT pg_advisory_xact_lock(" + key + ")");
            CompletableFuture<Boolean> forced =
                    CompletableFuture.supplyAsync(() -> b.forceRelease("name", "the test says so", true));
            await().pollInterval(Duration.ofMillis(2))
                    .until(() -> database.isTrue(
                            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%starts_with(a.application_name%'"
                                    + " AND application_name = 'pglock:orders:B')"));
            claimant.rollback();

            assertThat(forced.get(5, TimeUnit.SECONDS)).isFalse();
            assertThat(claimant.isValid(1)).isTrue();
        }
    }

    @Test
    void theDocumentedQueriesLeadFromPgLocksToANameAndBack() throws Exception {
        LockHandle lock = taken(a, LockRequest.of("daily-rollup").data("so that it has a row"));
        List<String> queries = documentedQueries();
        try (Connection direct = database.direct();
                Statement statement = direct.createStatement();
                var row = statement.executeQuery(queries.get(0))) {
            assertThat(row.next()).isTrue();
            assertThat(row.getString("lock")).isEqualTo("orders:daily-rollup");
            assertThat(row.getString("application_name")).isEqualTo("pglock:orders:A");
            assertThat(row.getLong("key")).isEqualTo(lock.key());
        }
        String back = queries.get(1).replace("orders:daily-rollup", "orders:daily-rollup");
        assertThat(database.text(back)).isEqualTo(Long.toString(lock.key()));
    }

    private static List<String> documentedQueries() throws IOException {
        String text = Files.readString(Path.of("..", "docs", "strategies.md"));
        List<String> queries = new ArrayList<>();
        for (String block :
                text.substring(text.indexOf("## From a key to a name")).split("```")) {
            if (block.startsWith("sql")) {
                queries.add(block.substring(3));
            }
        }
        return queries;
    }

    @Test
    void settingsOfARoleDoNotEndTheSession() throws Exception {
        String role = database.server().newRole();
        database.execute("ALTER ROLE " + role + " SET idle_session_timeout = '500ms'");
        database.execute("ALTER ROLE " + role + " SET idle_in_transaction_session_timeout = '200ms'");
        database.execute("ALTER ROLE " + role + " SET default_transaction_read_only = on");
        database.execute("GRANT ALL ON pglock_lease TO " + role);
        SessionFactory sessions = new SessionFactory(
                () -> ConnectionSpec.of(database.url(), role, role),
                SessionSettings.of("orders", "R", JdbcTimeouts.of(ReplicaStores.LEASE)));
        try (AdvisoryStore store = new AdvisoryStore(
                new LockSessions(sessions, ReplicaStores.LEASE),
                new OwnConnections(sessions, 1),
                StoreIdentity.random("orders", "R"),
                KeyDerivation.SHA256,
                new AdvisorySettings(
                        ReplicaStores.TABLE, ReplicaStores.LEASE, 5, JdbcTimeouts.of(ReplicaStores.LEASE)))) {
            Claim claim =
                    new Claim("name", KeyDerivation.SHA256.key("orders", "name"), ReplicaStores.LEASE, null, null);
            assertThat(store.claim(claim)).isInstanceOf(ClaimAnswer.Granted.class);
            await().during(Duration.ofMillis(1200))
                    .atMost(Duration.ofSeconds(3))
                    .until(() -> b.tryAcquire(LockRequest.of("name")).isEmpty());
        }
    }

    @Test
    void aLockTableThatIsFullIsSaidSo() throws Exception {
        PostgresServer server = PostgresServer.dedicated();
        TestDatabase full = server.newDatabase();
        try (server;
                Connection greedy = full.direct();
                Statement statement = greedy.createStatement()) {
            SessionFactory sessions = new SessionFactory(
                    () -> ConnectionSpec.of(full.url(), full.username(), full.password()),
                    SessionSettings.of("orders", "A", JdbcTimeouts.of(ReplicaStores.LEASE)));
            try (AdvisoryStore store = new AdvisoryStore(
                    new LockSessions(sessions, ReplicaStores.LEASE),
                    new OwnConnections(sessions, 1),
                    StoreIdentity.random("orders", "A"),
                    KeyDerivation.SHA256,
                    new AdvisorySettings(
                            ReplicaStores.TABLE, ReplicaStores.LEASE, 5, JdbcTimeouts.of(ReplicaStores.LEASE)))) {
                Claim claim =
                        new Claim("name", KeyDerivation.SHA256.key("orders", "name"), ReplicaStores.LEASE, null, null);
                ClaimAnswer.Granted warm = (ClaimAnswer.Granted) store.claim(claim);
                assertThat(warm.fence()).isPositive();
                assertThatExceptionOfType(SQLException.class)
                        .isThrownBy(() -> statement.execute(
                                "SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 1000000) AS i"))
                        .withMessageContaining("out of shared memory");

                assertThatExceptionOfType(LockStorageException.class)
                        .isThrownBy(() -> {
                            for (int i = 0; i < 4; i++) {
                                store.claim(new Claim(
                                        "name " + i,
                                        KeyDerivation.SHA256.key("orders", "name " + i),
                                        ReplicaStores.LEASE,
                                        null,
                                        null));
                            }
                        })
                        .withMessageContaining("max_locks_per_transaction")
                        .withMessageContaining("pglock.advisory.max-locks");
            }
        }
    }
}
