package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.denied;
import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.DenialReason;
import dev.pglock.LockRefusedException;
import dev.pglock.LockState;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.RenewalAnswer.Result;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Others who hold rows and keys, or have paused a lock. */
class LeaseContentionTests {

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();
    private final LeaseStore a = stores.store("A");
    private final LeaseStore b = stores.store("B");

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    @Test
    void aRowThatSomebodyHasLockedDelaysNoOther() throws Exception {
        List<Renewal> renewals = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            String name = "name " + i;
            renewals.add(LeaseStores.renewal(name, granted(a.claim(LeaseStores.claim(name, Duration.ofMinutes(1))))));
        }
        try (Connection direct = database.direct()) {
            lockRow(direct, "name 17");

            long begun = System.nanoTime();
            List<RenewalAnswer> answers = a.renew(renewals, Duration.ofSeconds(1), Caller.HEARTBEAT);

            assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(1));
            assertThat(answers)
                    .filteredOn(answer -> answer.result() == Result.RENEWED)
                    .hasSize(59);
            assertThat(answers)
                    .filteredOn(answer -> answer.result() == Result.SKIPPED)
                    .extracting(RenewalAnswer::name)
                    .containsExactly("name 17");
            direct.rollback();
            assertThat(a.renew(List.of(renewals.get(17)), Duration.ofSeconds(1), Caller.HEARTBEAT))
                    .extracting(RenewalAnswer::result)
                    .containsExactly(Result.RENEWED);
        }
    }

    @Test
    void aKeyThatSomebodyHoldsIsBusyAndNothingIsWritten() throws Exception {
        ClaimAnswer.Granted lock = granted(a, "known");
        a.release(LeaseStores.release("known", lock));
        try (Connection direct = database.direct()) {
            for (String name : List.of("known", "never seen")) {
                TestDatabase.text(direct, "SELECT pg_advisory_lock(?)", LeaseStores.key(name));

                assertThat(denied(b, name).reason()).isEqualTo(DenialReason.KEY_BUSY);

                TestDatabase.text(direct, "SELECT pg_advisory_unlock(?)", LeaseStores.key(name));
            }
        }
        assertThat(database.number("SELECT fence FROM pglock_lease")).isEqualTo(lock.fence());
        granted(b, "known");
        granted(b, "never seen");
    }

    @Test
    void aKeySharedByAFencedCommitKeepsOthersOut() throws Exception {
        ClaimAnswer.Granted lock = granted(a, "known");
        try (Connection direct = database.direct()) {
            direct.setAutoCommit(false);
            TestDatabase.text(direct, "SELECT pg_try_advisory_xact_lock_shared(?)", LeaseStores.key("known"));
            assertThat(a.release(LeaseStores.release("known", lock))).isTrue();

            assertThat(denied(b, "known").reason()).isEqualTo(DenialReason.KEY_BUSY);

            direct.commit();
        }
        granted(b, "known");
    }

    @Test
    void theKeyIsFreeAgainWhenTheClaimHasReturned() {
        granted(a, "known");

        assertThat(database.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                        + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"))
                .isZero();
    }

    @Test
    void aFreeRowThatSomebodyHasLockedIsBusyAfterAMoment() throws Exception {
        a.release(LeaseStores.release("known", granted(a, "known")));
        try (Connection direct = database.direct()) {
            lockRow(direct, "known");
            long begun = System.nanoTime();

            assertThat(denied(b, "known").reason()).isEqualTo(DenialReason.KEY_BUSY);

            assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(1));
            direct.rollback();
        }
        granted(b, "known");
    }

    @Test
    void aReleaseWaitsForWhoeverHasTheRowLockedForAWhile() throws Exception {
        ClaimAnswer.Granted lock = granted(a, "known");
        try (Connection direct = database.direct()) {
            lockRow(direct, "known");
            assertThatExceptionOfType(LockRefusedException.class)
                    .isThrownBy(() -> a.release(LeaseStores.release("known", lock)))
                    .withMessageContaining("keeps its row locked");
            direct.rollback();
        }
        assertThat(a.release(LeaseStores.release("known", lock))).isTrue();
    }

    @Test
    void aPausedLockIsDeniedAndShownAsPaused() {
        a.release(LeaseStores.release("known", granted(a, "known")));
        database.execute("UPDATE pglock_lease SET paused = 'maintenance'");

        assertThat(denied(b, "known").reason()).isEqualTo(DenialReason.PAUSED);
        assertThat(b.find("known").orElseThrow().state()).isEqualTo(LockState.PAUSED);

        database.execute("UPDATE pglock_lease SET paused = NULL");
        granted(b, "known");
    }

    @Test
    void aFenceThatIsAheadOfTheTransactionIdsGoesOnFromThere() {
        a.release(LeaseStores.release("known", granted(a, "known")));
        database.execute("UPDATE pglock_lease SET fence = 1000000000000");

        assertThat(granted(b, "known").fence()).isEqualTo(1_000_000_000_001L);
    }

    @Test
    void aReleaseOfAForeignFenceDoesNothing() {
        ClaimAnswer.Granted lock = granted(a, "known");
        ClaimAnswer.Granted forged = new ClaimAnswer.Granted(lock.fence() - 1, lock.acquiredAt(), lock.expiresAt());

        assertThat(a.release(LeaseStores.release("known", forged))).isFalse();
        assertThat(denied(b, "known").reason()).isEqualTo(DenialReason.HELD);
    }

    @Test
    void theSweepRemovesWhatIsOldAndRemembersNothing() {
        LeaseStore sweeper = stores.store(
                StoreIdentity.random(LeaseStores.NAMESPACE, "S"),
                stores.spec(database.url()),
                LeaseStores.TABLE,
                Duration.ofMinutes(1));
        List<String> all = List.of(
                "free",
                "young",
                "held",
                "expired",
                "completed",
                "data",
                "paused",
                "hold",
                "restored",
                "other namespace");
        for (String name : all) {
            ClaimAnswer.Granted lock = granted(a, name);
            if (!name.equals("held") && !name.equals("expired")) {
                a.release(LeaseStores.release(name, lock));
            }
        }
        database.execute("""
                UPDATE pglock_lease SET acquired_at = acquired_at - interval '1 h', released_at = released_at - interval '1 h',
                  expires_at = CASE WHEN name = 'held' THEN expires_at + interval '1 h' ELSE expires_at - interval '1 h' END
                WHERE name <> 'young';
                UPDATE pglock_lease SET completed = '{1}' WHERE name = 'completed';
                UPDATE pglock_lease SET data = 'x' WHERE name = 'data';
                UPDATE pglock_lease SET paused = 'x' WHERE name = 'paused';
                UPDATE pglock_lease SET hold_until = clock_timestamp() + interval '1 h' WHERE name = 'hold';
                UPDATE pglock_lease SET fence = 1000000000000 WHERE name = 'restored';
                UPDATE pglock_lease SET namespace = 'other' WHERE name = 'other namespace';
                """);
        stores.store(
                        StoreIdentity.random(LeaseStores.NAMESPACE, "never"),
                        stores.spec(database.url()),
                        LeaseStores.TABLE,
                        Duration.ZERO)
                .tidyUp();
        assertThat(database.number("SELECT count(*) FROM pglock_lease")).isEqualTo(all.size());

        sweeper.tidyUp();

        assertThat(database.text("SELECT string_agg(name, ', ' ORDER BY name) FROM pglock_lease"))
                .isEqualTo("completed, data, held, hold, other namespace, paused, restored, young");
        long greatest = database.number("SELECT max(fence) FROM pglock_lease WHERE name <> 'restored'");
        assertThat(granted(a, "free").fence()).isGreaterThan(greatest);
    }

    private static void lockRow(Connection direct, String name) throws SQLException {
        direct.setAutoCommit(false);
        try (Statement statement = direct.createStatement()) {
            statement.execute("SELECT 1 FROM pglock_lease WHERE name = '" + name + "' FOR UPDATE");
        }
    }
}
