package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockInfo;
import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Roles, databases, sessions and time zones that are set up for something else. */
class HostileSettingsTests {

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private void setForDatabase(String setting) {
        database.server().execute("ALTER DATABASE " + database.name() + " SET " + setting);
    }

    @Test
    void noSettingOfRoleOrDatabaseReachesOurSessions() throws Exception {
        String role = database.server().newRole();
        setForDatabase("default_transaction_isolation = 'serializable'");
        setForDatabase("default_transaction_read_only = on");
        setForDatabase("default_transaction_deferrable = on");
        setForDatabase("synchronous_commit = off");
        database.server().execute("ALTER ROLE " + role + " SET statement_timeout = '1ms'");
        database.server().execute("ALTER ROLE " + role + " SET lock_timeout = '1ms'");
        database.server().execute("ALTER ROLE " + role + " SET idle_in_transaction_session_timeout = '1s'");
        database.server().execute("ALTER ROLE " + role + " SET idle_session_timeout = '1s'");
        database.server().execute("ALTER ROLE " + role + " SET application_name = 'theirs'");
        OwnConnections connections =
                stores.connections("pod é'\n-1", () -> ConnectionSpec.of(database.url(), role, role), 1);

        Map<String, String> expected = Map.of(
                "transaction_isolation", "read committed",
                "transaction_read_only", "off",
                "transaction_deferrable", "off",
                "synchronous_commit", "on",
                "statement_timeout", "666ms",
                "lock_timeout", "333ms",
                "idle_in_transaction_session_timeout", "666ms",
                "idle_session_timeout", "0",
                "application_name", "pglock:test:pod ?'?-1");
        for (Map.Entry<String, String> setting : expected.entrySet()) {
            String value = connections.run(
                    Lane.WORK,
                    Duration.ofSeconds(5),
                    (c, unanswered) -> TestDatabase.text(c, "SHOW " + setting.getKey()));
            assertThat(value).as(setting.getKey()).isEqualTo(setting.getValue());
        }
    }

    @Test
    void fiveHundredContendedRoundsUnderASerializableDefaultHaveOneWinnerEach() throws Exception {
        setForDatabase("default_transaction_isolation = 'serializable'");
        LeaseStore a = stores.store("A");
        LeaseStore b = stores.store("B");
        List<LeaseStore> replicas = List.of(a, b);

        for (int round = 0; round < 500; round++) {
            String name = "name " + round % 3;
            List<ClaimAnswer> answers = Concurrently.run(
                    2, i -> () -> replicas.get(i).claim(LeaseStores.claim(name, Duration.ofSeconds(30))));
            List<Boolean> won =
                    answers.stream().map(ClaimAnswer.Granted.class::isInstance).toList();
            assertThat(Collections.frequency(won, true)).isEqualTo(1);
            int winner = won.indexOf(true);
            assertThat(replicas.get(winner).release(LeaseStores.release(name, granted(answers.get(winner)))))
                    .isTrue();
        }
    }

    @Test
    void aReadOnlyDefaultIsOverruledAndItsResetNeedsNothing() {
        LeaseStore a = stores.store("A");
        a.release(LeaseStores.release("name", granted(a, "name")));
        setForDatabase("default_transaction_read_only = on");
        database.terminate("pglock:%");

        a.release(LeaseStores.release("name", granted(a, "name")));

        database.server().execute("ALTER DATABASE " + database.name() + " RESET default_transaction_read_only");
        a.release(LeaseStores.release("name", granted(a, "name")));
    }

    @Test
    void aSessionThatWasLeftReadOnlyIsReplaced() throws Exception {
        OwnConnections connections = stores.connections("A", stores.spec(database.url()), 1);
        LeaseStore a = store(connections);
        ClaimAnswer.Granted lock = granted(a, "name");
        breakSession(connections, "SET default_transaction_read_only = on");

        assertThat(a.release(LeaseStores.release("name", lock))).isTrue();

        granted(a, "name");
    }

    @Test
    void aSessionThatHasLostItsPreparedStatementsIsReplaced() throws Exception {
        OwnConnections connections = stores.connections("A", stores.spec(database.url()), 1);
        LeaseStore a = store(connections);
        for (int i = 0; i < 10; i++) {
            a.release(LeaseStores.release("name", granted(a, "name")));
        }
        // Inside a block, where the driver does not see it
        breakSession(connections, "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$");

        a.release(LeaseStores.release("name", granted(a, "name")));
    }

    private LeaseStore store(OwnConnections connections) {
        return new LeaseStore(
                connections,
                StoreIdentity.random(LeaseStores.NAMESPACE, "A"),
                LeaseStores.TABLE,
                JdbcTimeouts.of(LeaseStores.LEASE),
                Duration.ZERO);
    }

    private static void breakSession(OwnConnections connections, String sql) throws SQLException {
        connections.run(Lane.WORK, Duration.ofSeconds(5), (connection, unanswered) -> execute(connection, sql));
    }

    private static boolean execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.execute(sql);
        }
    }

    @ParameterizedTest
    @CsvSource({"Asia/Kolkata, America/New_York", "Pacific/Kiritimati, Etc/GMT+12", "Europe/Berlin, UTC"})
    void replicasInDifferentTimeZonesAgree(String zoneOfA, String zoneOfB) {
        LeaseStore a = storeIn(zoneOfA);
        LeaseStore b = storeIn(zoneOfB);
        for (int i = 0; i < 5; i++) {
            Duration lease = Duration.ofMillis(300);
            ClaimAnswer.Granted first = granted(a.claim(LeaseStores.claim("name", lease)));
            assertThat(LeaseStores.denied(b, "name").expiresIn()).isBetween(Duration.ZERO, lease);
            LockInfo seen = b.find("name").orElseThrow();
            assertThat(seen.expiresAt()).isEqualTo(first.expiresAt()).isEqualTo(expiry());

            await().pollInterval(Duration.ofMillis(5))
                    .until(() -> b.claim(LeaseStores.claim("name", lease)) instanceof ClaimAnswer.Granted);

            assertThat(Duration.between(
                            first.expiresAt(), b.find("name").orElseThrow().acquiredAt()))
                    .isBetween(Duration.ZERO, Duration.ofSeconds(1));
            await().pollInterval(Duration.ofMillis(5))
                    .until(() -> database.isTrue("SELECT expires_at <= clock_timestamp() FROM pglock_lease"));
        }
    }

    private LeaseStore storeIn(String zone) {
        Map<String, String> properties = Map.of("options", "-c TimeZone=" + zone);
        OwnConnections connections = stores.connections(
                zone,
                () -> new ConnectionSpec(database.url(), database.username(), database.password(), properties),
                1);
        try {
            // The driver sends the JVM's zone with the options, and the last one wins: make sure of it.
            breakSession(connections, "SET TimeZone = '" + zone + "'");
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
        return store(connections);
    }

    private Instant expiry() {
        String micros = database.text("SELECT (extract(epoch FROM expires_at) * 1000000)::bigint FROM pglock_lease");
        return Instant.EPOCH.plus(Long.parseLong(String.valueOf(micros)), java.time.temporal.ChronoUnit.MICROS);
    }
}
