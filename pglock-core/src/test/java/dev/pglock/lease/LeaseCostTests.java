package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.Tick;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a lock costs, counted on the wire and in the server. */
class LeaseCostTests {

    private static final Instant START = Instant.now().minusSeconds(900);

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final LeaseStore a = stores.store("A", wire);

    @BeforeEach
    void openTheConnection() {
        a.release(LeaseStores.release("known", granted(a.claim(LeaseStores.claim("known", tick(-1))))));
    }

    @AfterEach
    void close() throws Exception {
        stores.close();
        wire.close();
    }

    private interface Work {
        void run() throws Exception;
    }

    private void assertRoundTrips(int expected, Work work) throws Exception {
        long trips = wire.roundTrips();
        long statements = wire.statements();
        work.run();
        assertThat(wire.roundTrips() - trips).as("round trips").isEqualTo(expected);
        assertThat(wire.statements() - statements).as("statements").isEqualTo(expected);
    }

    @Test
    void aClaimAndAReleaseOfAKnownNameAreOneRoundTripEach() throws Exception {
        // More often than the driver's threshold for named statements, so that preparing them is seen too
        for (int i = 0; i < 12; i++) {
            ClaimAnswer.Granted[] lock = new ClaimAnswer.Granted[1];
            assertRoundTrips(1, () -> lock[0] = granted(a, "known"));
            assertRoundTrips(1, () -> a.release(LeaseStores.release("known", lock[0])));
        }
    }

    @Test
    void aClaimOfANameNeverSeenIsTwo() throws Exception {
        for (int i = 0; i < 12; i++) {
            String name = "new " + i;
            assertRoundTrips(2, () -> granted(a, name));
        }
    }

    @Test
    void aClaimOnAConnectionThatWasIdleForLongerThanPoolsTrustThemIsStillOneRoundTrip() throws Exception {
        await().until(() -> database.isTrue("SELECT bool_and(clock_timestamp() - state_change > '1.2 s')"
                + " FROM pg_stat_activity WHERE application_name LIKE 'pglock:%' AND datname = current_database()"));

        assertRoundTrips(1, () -> granted(a, "known"));
    }

    @Test
    void aNewConnectionIsSetUpInOneRoundTripBesideTheDriversOwn() throws Exception {
        LeaseStore other = stores.store("B", wire);

        assertRoundTrips(1 + 1 + 1, () -> granted(other, "known"));
    }

    @Test
    void aDenialReadsOnly() throws Exception {
        LeaseStore b = stores.store("B");
        granted(b.claim(LeaseStores.claim("known", Duration.ofMinutes(5))));
        for (int i = 0; i < 10; i++) {
            assertRoundTrips(1, () -> LeaseStores.denied(a, "known"));
        }
        try (Connection direct = database.direct()) {
            String row = row(direct);
            // Once in fifteen seconds the server itself may write some bytes.
            await().pollInterval(Duration.ofMillis(1)).untilAsserted(() -> {
                String before = written(direct);
                for (int i = 0; i < 1000; i++) {
                    assertThat(LeaseStores.denied(a, "known").reason()).isEqualTo(DenialReason.HELD);
                }
                assertThat(written(direct)).isEqualTo(before);
            });
            assertThat(row(direct)).as("place and row lock").isEqualTo(row);
        }
    }

    /** What a crash of the server may take with it: no more than an early end of the lock. */
    @Test
    void aReleaseWaitsForTheDiskUnlessItCanBeForgotten() throws Exception {
        Tick delay = new Tick.Delay(Duration.ofMillis(1));
        LockRequest known = LockRequest.of("known");
        try (LockEngine engine = LockEngine.builder(
                        EngineSettings.defaults(LeaseStores.NAMESPACE, "E", LockStrategy.LEASE))
                .store(stores.store("E"))
                .build()) {
            assertThat(durableReleases(engine, known, false, null))
                    .as("durable ones")
                    .isLessThan(15);
            assertThat(durableReleases(engine, known, false, tick(0)))
                    .as("durable ones")
                    .isLessThan(15);
            assertThat(durableReleases(engine, known, false, delay)).isGreaterThan(27);
            assertThat(durableReleases(engine, known.minHold(Duration.ofMillis(1)), false, null))
                    .isGreaterThan(27);
            assertThat(durableReleases(engine, LockRequest.of("versions"), true, null))
                    .isGreaterThan(27);
        }
    }

    private static @Nullable LockHandle handle(LockAttempt attempt) {
        return attempt instanceof LockAttempt.Granted granted ? granted.lock() : null;
    }

    /** Of thirty. The server itself writes what is not waited for, after a fifth of a second at the latest. */
    private int durableReleases(LockEngine engine, LockRequest request, boolean versioned, @Nullable Tick tick)
            throws Exception {
        int durable = 0;
        try (Connection direct = database.direct()) {
            for (int i = 0; i < 30; i++) {
                LockRequest again = versioned ? request.version("version " + i) : request;
                Tick next = tick instanceof Tick.Calendar ? tick(i) : tick;
                LockHandle[] lock = new LockHandle[1];
                await().pollInterval(Duration.ofMillis(2))
                        .until(() -> (lock[0] = handle(engine.attempt(again, next))) != null);
                lock[0].release();
                String written =
                        TestDatabase.text(direct, "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()");
                durable += "t".equals(written) ? 1 : 0;
            }
        }
        return durable;
    }

    /** Where the WAL ends and the next transaction id. */
    private static String written(Connection direct) throws Exception {
        return TestDatabase.text(
                direct, "SELECT pg_current_wal_insert_lsn() || ' ' || pg_snapshot_xmax(pg_current_snapshot())");
    }

    private static String row(Connection direct) throws Exception {
        return TestDatabase.text(
                direct, "SELECT ctid || ' ' || xmin || ' ' || xmax FROM pglock_lease WHERE name = 'known'");
    }

    /** Only the first fire time that a replica ever asks with needs to know the server's time, once. */
    @Test
    void aTickIsRememberedWithTheGrantAndDeniedByReadingOnly() throws Exception {
        for (int i = 0; i < 12; i++) {
            Claim claim = LeaseStores.claim("known", tick(i));
            ClaimAnswer.Granted[] lock = new ClaimAnswer.Granted[1];
            assertRoundTrips(1, () -> lock[0] = granted(a.claim(claim)));
            assertRoundTrips(1, () -> a.release(LeaseStores.release("known", lock[0])));
        }
        try (Connection direct = database.direct()) {
            await().pollInterval(Duration.ofMillis(1)).untilAsserted(() -> {
                String before = written(direct);
                for (int i = 0; i < 200; i++) {
                    assertThat(a.claim(LeaseStores.claim("known", tick(11)))).isInstanceOf(ClaimAnswer.Denied.class);
                }
                assertThat(written(direct)).isEqualTo(before);
            });
        }
    }

    /** Releases come and go, and each may have triggers of its own. */
    @Test
    void aRowRemembersNoMoreTriggersThanAreLikelyToBeAskedFor() {
        for (int i = 0; i < 30; i++) {
            Claim claim = LeaseStores.claim("known", new Tick.Rate("every " + i, Duration.ofMinutes(1)));
            a.release(LeaseStores.release("known", granted(a.claim(claim))));
        }
        assertThat(database.number("SELECT count(*) FROM pglock_lease, jsonb_object_keys(ticks)"))
                .isEqualTo(16);
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE ticks ->> 'every 29' IS NOT NULL"
                        + " AND ticks ->> 'every 14' IS NOT NULL"))
                .isEqualTo(1);
    }

    private static Tick tick(int which) {
        Instant due = START.plusSeconds(60L * which);
        return new Tick.Calendar("every minute", due, Clock.systemUTC(), after -> {
            long passed = Math.floorDiv(Duration.between(START, after).toNanos(), 60_000_000_000L);
            return START.plusSeconds(60 * (passed + 1));
        });
    }

    @Test
    void aThousandHeldLocksAreRenewedByOneStatement() throws Exception {
        List<Renewal> renewals = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            String name = "name of a lock that is about as long as such names are " + i;
            renewals.add(LeaseStores.renewal(name, granted(a.claim(LeaseStores.claim(name, Duration.ofMinutes(1))))));
        }
        assertRoundTrips(0, () -> {});
        List<RenewalAnswer> answers = new ArrayList<>();
        // The heartbeat's connection is a second one.
        a.renew(renewals.subList(0, 1), Duration.ofSeconds(5), Caller.HEARTBEAT);
        long begun = System.nanoTime();

        assertRoundTrips(1, () -> answers.addAll(a.renew(renewals, Duration.ofSeconds(5), Caller.HEARTBEAT)));

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(1));
        assertThat(answers).hasSize(1000).allMatch(answer -> answer.result() == RenewalAnswer.Result.RENEWED);
    }

    @Test
    void aPlanThatWasMadeForASmallTableServesALargeOne() {
        StoreIdentity identity = StoreIdentity.random(LeaseStores.NAMESPACE, "B");
        LeaseStore b = stores.store(identity);
        ClaimAnswer.Granted lock = granted(b, "known");
        for (int i = 0; i < 12; i++) {
            b.renew(List.of(LeaseStores.renewal("known", lock)), Duration.ofSeconds(5), Caller.HEARTBEAT);
        }
        database.execute("INSERT INTO pglock_lease (namespace, name, holder, fence, acquired_at, expires_at)"
                + " SELECT '" + LeaseStores.NAMESPACE + "', 'name ' || i, '" + identity.holder()
                + "', i, now(), now() + '1 h'"
                + " FROM generate_series(1, 10000) i");
        List<Renewal> renewals = LongStream.rangeClosed(1, 1000)
                .mapToObj(i -> new Renewal("name " + i, i, Duration.ofHours(2), null))
                .toList();

        // It would take seconds, and our own statement timeout ends it long before, if every name met every row.
        List<RenewalAnswer> answers = b.renew(renewals, Duration.ofSeconds(5), Caller.HEARTBEAT);

        assertThat(answers).hasSize(1000).allMatch(answer -> answer.result() == RenewalAnswer.Result.RENEWED);
    }

    @Test
    void aThousandRowsThatAreRenewedTogetherStayOnTheirPages() {
        List<Renewal> renewals = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            String name = "OrderService.nightlyReconciliation-" + i;
            renewals.add(LeaseStores.renewal(name, granted(a.claim(LeaseStores.claim(name, Duration.ofMinutes(1))))));
        }
        for (int i = 0; i < 10; i++) {
            a.renew(renewals, Duration.ofSeconds(5), Caller.HEARTBEAT);
        }
        a.close();

        await().untilAsserted(() -> assertThat(statistic("n_tup_upd")).isGreaterThan(10_000));
        assertThat(statistic("n_tup_hot_upd")).isEqualTo(statistic("n_tup_upd"));
    }

    @Test
    void updatesStayOnTheirPageAndLeaveTheIndexAlone() throws Exception {
        for (int i = 0; i < 300; i++) {
            String name = "name " + i % 20;
            ClaimAnswer.Granted lock = granted(a, name);
            a.renew(List.of(LeaseStores.renewal(name, lock)), Duration.ofSeconds(5), Caller.HEARTBEAT);
            a.release(LeaseStores.release(name, lock));
        }
        // The server counts a session's last doings when it ends.
        a.close();

        await().untilAsserted(() -> {
            assertThat(statistic("n_tup_upd")).isEqualTo(300 * 3 - 20 + 1);
            assertThat(statistic("n_tup_hot_upd")).isEqualTo(statistic("n_tup_upd"));
        });
    }

    private long statistic(String column) {
        return database.number("SELECT " + column + " FROM pg_stat_user_tables WHERE relname = 'pglock_lease'");
    }
}
