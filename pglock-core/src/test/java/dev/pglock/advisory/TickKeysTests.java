package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.Release;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Ticks that are remembered by keys, because there is no table: what becomes of the keys when something goes wrong. */
@Execution(ExecutionMode.CONCURRENT)
class TickKeysTests {

    private static final String NAMESPACE = "tick-keys";
    private static final Duration LEASE = ReplicaStores.LEASE;
    private static final String SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pglock:"
            + NAMESPACE + ":A'" + " AND datname = current_database()";

    private final ReplicaStores stores = ReplicaStores.withoutTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final AdvisoryStore a = stores.store(StoreIdentity.random(NAMESPACE, "A"), wire);
    private final AdvisoryStore b = stores.store(StoreIdentity.random(NAMESPACE, "B"));

    @AfterEach
    void close() throws Exception {
        stores.close();
        wire.close();
    }

    private static long key(String name) {
        return KeyDerivation.SHA256.key(NAMESPACE, name);
    }

    private static Claim claim(String name, @Nullable Tick tick) {
        return new Claim(name, key(name), LEASE, null, null, tick);
    }

    private static Release release(String name, ClaimAnswer.Granted lock) {
        return new Release(name, key(name), lock.fence(), RunOutcome.SUCCEEDED, null, null, null, false);
    }

    private static ClaimAnswer.Granted granted(AdvisoryStore store, String name, @Nullable Tick tick) {
        ClaimAnswer answer = store.claim(claim(name, tick));
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    private static void run(AdvisoryStore store, String name, @Nullable Tick tick) {
        assertThat(store.release(release(name, granted(store, name, tick)))).isTrue();
    }

    private static DenialReason denied(AdvisoryStore store, String name, @Nullable Tick tick) {
        ClaimAnswer answer = store.claim(claim(name, tick));
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial().reason();
    }

    @Test
    void theMemoryOfATickEndsWithTheSession() {
        Tick tick = new Tick.Rate("rate", Duration.ofMinutes(5));
        run(a, "name", tick);
        assertThat(denied(b, "name", tick)).isEqualTo(DenialReason.TICK_DONE);

        database.terminate("pglock:" + NAMESPACE + ":A");

        await().until(() -> stores.keysHeld() == 0);
        run(b, "name", tick);
        assertThat(denied(a, "name", tick)).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void aReplicaThatClosesKeepsNoSessionForItsTicks() {
        run(a, "name", new Tick.Rate("rate", Duration.ofMinutes(5)));
        assertThat(stores.keysHeld()).isEqualTo(1);

        a.close();

        await().until(() -> database.number(SESSIONS) == 0);
        assertThat(stores.keysHeld()).isZero();
    }

    @Test
    void keptTicksKeepTheSessionBeyondTheLeaseAndTheIdleTimeAndThenItIsClosed() {
        // With a server that would end a silent session sooner.
        database.execute("ALTER DATABASE " + database.name() + " SET idle_session_timeout = '1s'");
        Tick tick = new Tick.Rate("rate", LEASE.multipliedBy(2));
        run(a, "name", tick);

        await().during(LEASE.plusMillis(500))
                .atMost(LEASE.multipliedBy(3))
                .until(() -> denied(b, "name", tick) == DenialReason.TICK_DONE);

        await().atMost(Duration.ofSeconds(20)).until(() -> {
            a.tidyUp();
            return stores.keysHeld() == 0;
        });
        await().atMost(Duration.ofSeconds(20)).until(() -> {
            a.tidyUp();
            return database.number(SESSIONS) == 0;
        });
        assertThat(a.untilTidyUp()).isNull();
    }

    @Test
    void ticksCountAmongTheMostLocksOfAReplicaAndTheMessageSaysSo() {
        AdvisoryStore few = stores.store(StoreIdentity.random(NAMESPACE, "few"), database.url(), LEASE, 3);
        Tick tick = new Tick.Rate("rate", Duration.ofMinutes(5));
        run(few, "1", tick);
        run(few, "2", tick);

        // Lock and tick would be one too many.
        assertThatExceptionOfType(LockRefusedException.class)
                .isThrownBy(() -> few.claim(claim("3", tick)))
                .withMessageContaining("2 remember ticks")
                .withMessageContaining("pglock.advisory.max-locks");
        run(few, "3", null);
        assertThat(stores.keysHeld()).isEqualTo(2);
    }

    @Test
    void ownTicksAreNotShownAsLocks() {
        run(a, "name", new Tick.Rate("rate", Duration.ofMinutes(5)));
        granted(a, "held", null);

        assertThat(a.findAll()).extracting(LockInfo::name).containsExactly("held");
    }

    /** The key of a delay is kept without an end while its run lasts. A release that fails must not leave it so. */
    @Test
    void aDelayWhoseReleaseFailedIsNoReasonNeverToRunAgain() {
        Tick tick = new Tick.Delay(Duration.ofMillis(300));
        ClaimAnswer.Granted lock = granted(a, "name", tick);
        // What is asked at the end of a run fails, and the session lives.
        database.execute("ALTER DATABASE " + database.name() + " SET search_path = broken, pg_catalog, public");
        AdvisoryStore c = stores.store(StoreIdentity.random(NAMESPACE, "C"));
        assertThat(a.release(release("name", lock))).isTrue();
        ClaimAnswer.Granted second = (ClaimAnswer.Granted)
                await().until(() -> c.claim(claim("name", tick)), answer -> answer instanceof ClaimAnswer.Granted);
        database.execute("""
                CREATE SCHEMA broken;
                CREATE FUNCTION broken.to_regclass(text) RETURNS regclass LANGUAGE plpgsql
                  AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '57014'; END $$;
                """);

        assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> c.release(release("name", second)));

        database.execute("DROP SCHEMA broken CASCADE");
        await().atMost(Duration.ofSeconds(5)).until(() -> c.claim(claim("name", tick)) instanceof ClaimAnswer.Granted);
    }

    @Test
    void theKeyOfATickThatAFailedClaimCouldNotGiveBackIsGivenBackByWhoeverSpeaksNext() {
        database.execute("ALTER DATABASE " + database.name() + " SET search_path = broken, pg_catalog, public");
        AdvisoryStore c = stores.store(StoreIdentity.random(NAMESPACE, "C"));
        ClaimAnswer.Granted other = granted(c, "other", null);
        Tick tick = new Tick.Rate("rate", Duration.ofMinutes(5));
        database.execute("""
                CREATE SCHEMA broken;
                CREATE FUNCTION broken.to_regclass(text) RETURNS regclass LANGUAGE plpgsql
                  AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '57014'; END $$;
                CREATE FUNCTION broken.pg_advisory_unlock(bigint) RETURNS boolean LANGUAGE plpgsql
                  AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '57014'; END $$;
                """);

        assertThat(denied(c, "name", tick)).isEqualTo(DenialReason.KEY_BUSY);

        assertThat(stores.keysHeld()).isEqualTo(3);
        database.execute("DROP SCHEMA broken CASCADE");
        c.tidyUp();
        assertThat(stores.keysHeld()).isEqualTo(1);
        run(b, "name", tick);
        assertThat(c.release(release("other", other))).isTrue();
    }

    /** Its body may never end; the session lives on with other locks. */
    @Test
    void aDelayWhoseLockWasLostIsCountedFromTheLoss() {
        Tick tick = new Tick.Delay(Duration.ofMillis(300));
        ClaimAnswer.Granted lock = granted(a, "name", tick);

        a.abandon(new dev.pglock.store.LockStore.Tenancy("name", key("name"), lock.fence()));

        await().atMost(LEASE).until(() -> {
            a.tidyUp();
            return b.claim(claim("name", tick)) instanceof ClaimAnswer.Granted;
        });
        assertThat(a.release(release("name", lock))).isFalse();
        assertThat(denied(a, "name", tick)).isNotEqualTo(DenialReason.UNKNOWN);
    }

    @Test
    void aTableThatComesDuringARunTakesOverItsTick() {
        Tick tick = new Tick.Delay(Duration.ofMinutes(5));
        ClaimAnswer.Granted lock = granted(a, "name", tick);
        assertThat(stores.keysHeld()).isEqualTo(2);
        stores.createTable();

        assertThat(a.release(release("name", lock))).isTrue();

        assertThat(stores.keysHeld()).isZero();
        assertThat(a.untilTidyUp()).isNotNull().isLessThan(Duration.ofMinutes(5));
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE last_finished_at IS NOT NULL"))
                .isEqualTo(1);
        // The first claim finds the table, the next obeys it.
        await().until(() -> denied(b, "name", tick) == DenialReason.TICK_DONE);
    }

    @Test
    void aTableThatGoesDuringARunIsMissedByNoRelease() {
        stores.createTable();
        Tick tick = new Tick.Delay(Duration.ofMillis(200));
        run(a, "name", tick);
        ClaimAnswer.Granted lock = (ClaimAnswer.Granted)
                await().until(() -> a.claim(claim("name", tick)), answer -> answer instanceof ClaimAnswer.Granted);
        database.execute("DROP TABLE pglock_lease");

        assertThat(a.release(release("name", lock))).isTrue();

        assertThat(stores.keysHeld()).isZero();
        run(b, "name", tick);
        stores.createTable();
        await().until(() -> a.claim(claim("name", tick)) instanceof ClaimAnswer.Granted);
    }

    /** Answers lost, connections cut, backends terminated, releases that never come, at any moment of a cycle. */
    @Test
    void afterTwoThousandCyclesWithFailuresOnlyKeptTicksAreLeftAndTheyGoWithTime() {
        // Millions of them are past by then; the last ones are to be kept for a while.
        Duration period = Duration.ofMillis(1500);
        int grants = 0;
        for (int i = 0; i < 2000; i++) {
            String name = "name " + i % 7;
            switch (i % 40) {
                case 3 -> wire.loseNextAnswer();
                case 11 -> wire.cut();
                case 19 -> database.terminate("pglock:" + NAMESPACE + ":A");
                default -> {}
            }
            Tick tick = switch (i % 3) {
                case 0 -> new Tick.Moment("own", Instant.now());
                case 1 -> new Tick.Rate("rate", i > 1900 ? period : Duration.ofMillis(1));
                default -> new Tick.Delay(Duration.ofMillis(1));
            };
            try {
                if (a.claim(claim(name, tick)) instanceof ClaimAnswer.Granted lock) {
                    grants++;
                    if (i % 40 == 27) {
                        wire.loseNextAnswer();
                    }
                    if (i % 40 != 33) {
                        boolean ignored = a.release(release(name, lock));
                    }
                }
            } catch (LockStorageException e) {
                assertThat(e).hasMessageContaining("could not be");
            }
        }
        // Those whose release never came are given back by their next claim.
        for (int i = 0; i < 7; i++) {
            String name = "name " + i;
            await().until(() ->
                    a.claim(claim(name, null)) instanceof ClaimAnswer.Granted lock && a.release(release(name, lock)));
        }
        assertThat(grants).isGreaterThan(1000);
        System.out.println("grants " + grants + ", ticks kept at the end: " + stores.keysHeld());
        assertThat(stores.keysHeld()).as("ticks kept").isLessThanOrEqualTo(21);

        await().atMost(Duration.ofSeconds(30)).until(() -> {
            a.tidyUp();
            return stores.keysHeld() == 0;
        });
    }
}
