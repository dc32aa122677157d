package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockStorageException;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Release;
import dev.pglock.store.RenewalAnswer.Result;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Connections that break while a statement is under way. */
@Execution(ExecutionMode.CONCURRENT)
class LostAnswerTests {

    private final LeaseStores stores = LeaseStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final LeaseStore a = stores.store("A", wire);
    private final LeaseStore b = stores.store("B");

    @BeforeEach
    void openTheConnection() {
        a.release(LeaseStores.release("known", granted(a, "known")));
    }

    @AfterEach
    void close() throws Exception {
        stores.close();
        wire.close();
    }

    @Test
    void aGrantWhoseAnswerWasLostIsAdopted() {
        for (String name : List.of("known", "new", "known", "other new")) {
            long statements = wire.statements();
            wire.loseNextAnswer();
            // A name never seen asks twice: the answer to the first is the one that gets lost, and nothing was granted.
            boolean known = name.equals("known");

            ClaimAnswer.Granted lock = granted(a, name);

            assertThat(wire.statements() - statements)
                    .as("a claim, two to set up the new session, an adoption; one that finds nothing, and two claims")
                    .isEqualTo(known ? 4 : 6);
            assertThat(fence(name)).isEqualTo(lock.fence());
            assertThat(renewed(a, name, lock)).isEqualTo(Result.RENEWED);
            assertThat(LeaseStores.denied(b, name).fence()).isEqualTo(lock.fence());
            assertThat(a.release(LeaseStores.release(name, lock))).isTrue();
        }
    }

    @Test
    void anAdoptedGrantHasWhatWasAskedFor() {
        wire.loseNextAnswer();

        Claim claim = new Claim("known", LeaseStores.key("known"), Duration.ofSeconds(20), null, "payload");
        ClaimAnswer.Granted lock = granted(a.claim(claim));

        assertThat(a.find("known").orElseThrow().data()).isEqualTo("payload");
        assertThat(Duration.between(lock.acquiredAt(), lock.expiresAt()))
                .isGreaterThanOrEqualTo(Duration.ofSeconds(20));
    }

    /** What it was granted for then is not what is asked for now. */
    @Test
    void aLeftoverOfAnOlderClaimIsAdoptedOnlyWhereAClaimWouldBeGranted() {
        StoreIdentity identity = StoreIdentity.random(LeaseStores.NAMESPACE, "C");
        LeaseStore c = stores.store(identity, stores.spec(database.url(wire)), LeaseStores.TABLE, Duration.ZERO);
        c.release(LeaseStores.release("warm", granted(c, "warm")));
        Instant tick = Instant.now().truncatedTo(ChronoUnit.MICROS).minus(Duration.ofMinutes(5));
        Instant earlier = tick.minus(Duration.ofMinutes(1));

        leaveBehind(identity, "paused = 'for the test'");
        assertThat(reasonAfterLostAnswer(c, LeaseStores.claim("known"))).isEqualTo(DenialReason.PAUSED);

        leaveBehind(identity, "paused = NULL, completed = '{1}'");
        assertThat(reasonAfterLostAnswer(c, new Claim("known", LeaseStores.key("known"), LeaseStores.LEASE, "1", null)))
                .isEqualTo(DenialReason.DONE);

        leaveBehind(identity, "ticks = jsonb_build_object('own', '" + tick + "'::timestamptz)");
        assertThat(reasonAfterLostAnswer(c, LeaseStores.claim("known", new Tick.Moment("own", earlier))))
                .isEqualTo(DenialReason.TICK_DONE);

        leaveBehind(identity, "ticks = jsonb_build_object('own', '" + earlier + "'::timestamptz)");
        wire.loseNextAnswer();
        ClaimAnswer.Granted anew = granted(c.claim(LeaseStores.claim("known", new Tick.Moment("own", tick))));
        assertThat(c.release(LeaseStores.release("known", anew))).isTrue();
        assertThat(b.claim(LeaseStores.claim("known", new Tick.Moment("own", tick))))
                .as("the tick is remembered")
                .isInstanceOfSatisfying(
                        ClaimAnswer.Denied.class,
                        denied -> assertThat(denied.denial().reason()).isEqualTo(DenialReason.TICK_DONE));

        leaveBehind(identity, "last_finished_at = clock_timestamp()");
        assertThat(reasonAfterLostAnswer(c, LeaseStores.claim("known", new Tick.Delay(Duration.ofMinutes(1)))))
                .isEqualTo(DenialReason.TICK_DONE);
    }

    /** As a claim does that was granted unheard, long ago. */
    private void leaveBehind(StoreIdentity identity, String what) {
        database.execute("UPDATE pglock_lease SET holder = '" + identity.holder() + "', holder_label = 'C',"
                + " fence = greatest(fence + 1, pg_current_xact_id()::text::bigint), acquired_at = clock_timestamp(),"
                + " expires_at = clock_timestamp() + interval '1 hour', " + what + " WHERE name = 'known'");
    }

    private DenialReason reasonAfterLostAnswer(LeaseStore store, Claim claim) {
        wire.loseNextAnswer();
        ClaimAnswer answer = store.claim(claim);
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial().reason();
    }

    /** What it has remembered itself is no reason against it. */
    @Test
    void aTickWhoseGrantWasNotHeardOfIsAdopted() {
        for (Tick tick : List.of(
                new Tick.Moment("own", Instant.now()),
                new Tick.Rate("every ten minutes", Duration.ofMinutes(10)),
                new Tick.Delay(Duration.ofMillis(10)))) {
            long statements = wire.statements();
            wire.loseNextAnswer();

            ClaimAnswer.Granted lock = granted(a.claim(LeaseStores.claim("known", tick)));

            assertThat(wire.statements() - statements)
                    .as("a claim, two to set up the new session, an adoption")
                    .isEqualTo(4);
            assertThat(fence("known")).isEqualTo(lock.fence());
            assertThat(a.release(LeaseStores.release("known", lock))).isTrue();
        }
    }

    @Test
    void aReleaseWhoseAnswerWasLostHasReleased() {
        ClaimAnswer.Granted lock = granted(a, "known");
        wire.loseNextAnswer();

        assertThat(a.release(new Release(
                        "known", LeaseStores.key("known"), lock.fence(), RunOutcome.SUCCEEDED, null, null, "1", false)))
                .isTrue();

        assertThat(database.text("SELECT completed FROM pglock_lease")).isEqualTo("{1}");
        granted(b, "known");
    }

    @Test
    void aRenewalWhoseAnswerWasLostIsMadeAgain() {
        ClaimAnswer.Granted lock = granted(a, "known");
        wire.loseNextAnswer();

        assertThat(renewed(a, "known", lock)).isEqualTo(Result.RENEWED);
    }

    @Test
    void aLeftoverOfAClaimThatFailedAltogetherIsTakenOver() {
        AtomicReference<String> url = new AtomicReference<>(database.url(wire));
        LeaseStore c = store(url);
        granted(c, "warm");
        wire.loseNextAnswer();
        url.set("jdbc:postgresql://localhost:1/nowhere");
        assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> granted(c, "known"));
        long leftover = fence("known");
        assertThat(database.text("SELECT holder_label FROM pglock_lease WHERE name = 'known'"))
                .isEqualTo("C");

        url.set(database.url());
        ClaimAnswer.Granted lock = granted(c, "known");

        assertThat(lock.fence()).isGreaterThan(leftover);
        assertThat(fence("known")).isEqualTo(lock.fence());
    }

    @Test
    void aClaimThatTheNetworkHeldUpTakesNothingFromAYoungerOne() {
        AtomicReference<String> url = new AtomicReference<>(database.url(wire));
        LeaseStore c = store(url);
        c.release(LeaseStores.release("known", granted(c, "known")));
        a.close();
        wire.stall();
        url.set(database.url());

        ClaimAnswer.Granted lock = granted(c, "known");
        wire.resume();

        // What was held up reaches the server now; its session ends when it has been carried out.
        await().until(() -> database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        + " AND application_name LIKE 'pglock:%:C'")
                == 1);
        assertThat(fence("known")).isEqualTo(lock.fence());
        assertThat(renewed(c, "known", lock)).isEqualTo(Result.RENEWED);
        assertThat(c.release(LeaseStores.release("known", lock))).isTrue();
    }

    @Test
    void inABlackHoleACallEndsInTimeAndWorksAgainAfterwards() {
        ClaimAnswer.Granted lock = granted(a, "held");
        wire.stall();

        assertEndsWithin(Duration.ofSeconds(5), () -> a.claim(LeaseStores.claim("known")));
        assertEndsWithin(Duration.ofSeconds(5), () -> a.find("known"));
        // The budget, and what the pool takes to give up opening a connection
        assertEndsWithin(
                Duration.ofMillis(600 + 2600),
                () -> a.renew(List.of(LeaseStores.renewal("held", lock)), Duration.ofMillis(600), Caller.HEARTBEAT));
        assertEndsWithin(Duration.ofSeconds(4), a::close);

        wire.resume();
        LeaseStore again = stores.store("A again", wire);
        granted(again, "other");
    }

    private static void assertEndsWithin(Duration bound, Runnable call) {
        long begun = System.nanoTime();
        try {
            call.run();
        } catch (LockStorageException e) {
            assertThat(e).hasMessageContaining("could not be");
        }
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(bound);
    }

    @RepeatedTest(5)
    void aSessionThatWasEndedIsReplacedUnnoticed() {
        for (int i = 0; i < 10; i++) {
            ClaimAnswer.Granted lock = granted(a, "known");
            assertThat(renewed(a, "known", lock)).isEqualTo(Result.RENEWED);
            assertThat(database.terminate("pglock:%:A")).isPositive();
            if (i % 2 == 0) {
                wire.cut();
            }
            assertThat(renewed(a, "known", lock)).isEqualTo(Result.RENEWED);
            database.terminate("pglock:%:A");
            assertThat(a.release(LeaseStores.release("known", lock))).isTrue();
            database.terminate("pglock:%:A");
        }
    }

    @Test
    void aServerThatIsDownIsNeverReadAsHeld() {
        wire.close();

        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> a.claim(LeaseStores.claim("known")))
                .withMessageContaining("Lock 'known' could not be claimed")
                .withMessageNotContaining(database.password() + "@");
    }

    private LeaseStore store(AtomicReference<String> url) {
        return stores.store(
                StoreIdentity.random(LeaseStores.NAMESPACE, "C"),
                () -> ConnectionSpec.of(url.get(), database.username(), database.password()),
                LeaseStores.TABLE,
                Duration.ZERO);
    }

    private static Result renewed(LeaseStore store, String name, ClaimAnswer.Granted lock) {
        return store.renew(List.of(LeaseStores.renewal(name, lock)), Duration.ofSeconds(1), Caller.HEARTBEAT)
                .get(0)
                .result();
    }

    private long fence(String name) {
        return database.number("SELECT fence FROM pglock_lease WHERE name = ?", name);
    }
}
