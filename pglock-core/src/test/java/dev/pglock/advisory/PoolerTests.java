package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.RunOutcome;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.UnsupportedDatabaseException;
import dev.pglock.lease.LeaseStore;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Race;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PgBouncer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A real PgBouncer in between. */
class PoolerTests {

    private static final String NAMESPACE = "pooled";
    private static final Duration LONG = Duration.ofSeconds(30);

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private AdvisoryStore advisory(String label, PgBouncer pooler) {
        return stores.store(StoreIdentity.random(NAMESPACE, label), pooler.url(database), LONG, 10);
    }

    private LeaseStore lease(String label, PgBouncer pooler) {
        return stores.lease(StoreIdentity.random(NAMESPACE, label), pooler.url(database), LONG, 4);
    }

    private static Claim claim(String name) {
        return new Claim(name, KeyDerivation.SHA256.key(NAMESPACE, name), LONG, null, null);
    }

    private static Release release(String name, ClaimAnswer.Granted lock) {
        return new Release(
                name,
                KeyDerivation.SHA256.key(NAMESPACE, name),
                lock.fence(),
                RunOutcome.SUCCEEDED,
                null,
                null,
                null,
                false);
    }

    @ParameterizedTest
    @EnumSource(PgBouncer.Mode.class)
    void leasesWorkBehindIt(PgBouncer.Mode mode) throws Exception {
        try (PgBouncer pooler = PgBouncer.before(database.server(), mode)) {
            List<LockStore> replicas = new ArrayList<>();
            IntStream.range(0, 3).forEach(i -> replicas.add(lease("replica " + i, pooler)));

            assertThat(new Race(NAMESPACE, LONG, 5).run(replicas, 6, 4_000).grants())
                    .isGreaterThan(500);

            LockStore a = replicas.get(0);
            for (int i = 0; i < 20; i++) {
                ClaimAnswer.Granted lock = (ClaimAnswer.Granted) a.claim(claim("held"));
                assertThat(a.renew(
                                List.of(new Renewal("held", lock.fence(), LONG, null)),
                                Duration.ofSeconds(5),
                                Caller.HEARTBEAT))
                        .extracting(RenewalAnswer::result)
                        .containsExactly(RenewalAnswer.Result.RENEWED);
                assertThat(a.release(release("held", lock))).isTrue();
            }
        }
    }

    @Test
    void nothingOfOursStaysOnSomebodyElsesSession() throws Exception {
        try (PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.TRANSACTION)) {
            LeaseStore a = lease("A", pooler);
            for (int i = 0; i < 10; i++) {
                a.release(release("name", (ClaimAnswer.Granted) a.claim(claim("name"))));
            }
            try (Connection somebody =
                    DriverManager.getConnection(pooler.url(database), database.username(), database.password())) {
                for (String setting : List.of(
                        "lock_timeout",
                        "statement_timeout",
                        "idle_in_transaction_session_timeout",
                        "enable_seqscan",
                        "idle_session_timeout")) {
                    assertThat(TestDatabase.text(
                                    somebody,
                                    "SELECT setting = reset_val FROM pg_settings WHERE name = '" + setting + "'"))
                            .as(setting)
                            .isEqualTo("t");
                }
                assertThat(TestDatabase.text(somebody, "SELECT count(*) FROM pg_prepared_statements"))
                        .isEqualTo("0");
            }
        }
    }

    @RepeatedTest(5)
    void inTransactionModeAdvisoryLocksAreRefusedAndTheWaysOutAreNamed() throws Exception {
        try (PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.TRANSACTION)) {
            // Others keep the pooler's sessions moving.
            lease("B", pooler).claim(claim("other"));

            assertThatExceptionOfType(UnsupportedDatabaseException.class)
                    .isThrownBy(() -> advisory("A", pooler).claim(claim("name")))
                    .withMessageContaining("pglock.strategy=lease")
                    .withMessageContaining("pglock.datasource.url");
            assertThatExceptionOfType(UnsupportedDatabaseException.class)
                    .isThrownBy(() -> new LockSessions(
                                    stores.sessions(StoreIdentity.random(NAMESPACE, "A"), pooler.url(database), LONG),
                                    LONG)
                            .probe());
            assertThat(stores.keysHeld()).isZero();
        }
    }

    @Test
    void inSessionModeAdvisoryLocksWork() throws Exception {
        try (PgBouncer pooler = PgBouncer.before(database.server(), PgBouncer.Mode.SESSION)) {
            AdvisoryStore a = advisory("A", pooler);
            AdvisoryStore direct = stores.store(StoreIdentity.random(NAMESPACE, "B"));
            List<LockStore> replicas = List.of(a, direct);
            for (int i = 0; i < 20; i++) {
                LockStore one = replicas.get(i % 2);
                LockStore other = replicas.get((i + 1) % 2);
                ClaimAnswer.Granted lock = (ClaimAnswer.Granted) one.claim(claim("name"));
                assertThat(other.claim(claim("name"))).isInstanceOf(ClaimAnswer.Denied.class);
                assertThat(one.renew(
                                List.of(new Renewal("name", lock.fence(), LONG, null)),
                                Duration.ofSeconds(5),
                                Caller.HEARTBEAT))
                        .extracting(RenewalAnswer::result)
                        .containsExactly(RenewalAnswer.Result.RENEWED);
                assertThat(one.release(release("name", lock))).isTrue();
            }
            assertThat(stores.keysHeld()).isZero();
        }
    }

    /** What the opening could not see, because nobody else was there: the claim takes nothing, and says why. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aClaimOnAnotherSessionThanTheOneOpenedIsRefusedAndTakesNothing(boolean table) throws Exception {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
        AdvisorySettings settings = new AdvisorySettings(ReplicaStores.TABLE, LONG, 10, JdbcTimeouts.of(LONG));
        AdvisorySql sql = new AdvisorySql(settings.table());
        RowMemory rows = new RowMemory(identity, settings.table(), sql);
        rows.isThere(table);
        try (OwnConnections reads = new OwnConnections(stores.sessions(identity, database.url(), LONG), 1);
                Connection swapped = database.direct()) {
            KeyHolders holders = new KeyHolders(reads, identity, KeyDerivation.SHA256, settings);
            LockSession session = new LockSession(swapped, -1, stores.sessions(identity, database.url(), LONG), LONG);

            assertThatExceptionOfType(UnsupportedDatabaseException.class)
                    .isThrownBy(() -> new Claims(identity, KeyDerivation.SHA256, settings, sql, rows, holders)
                            .on(session, claim("name"), UUID.randomUUID(), LONG, () -> 0))
                    .withMessageContaining("pglock.strategy=lease");

            assertThat(session.hasEnded()).isTrue();
            assertThat(stores.keysHeld()).isZero();
        }
    }
}
