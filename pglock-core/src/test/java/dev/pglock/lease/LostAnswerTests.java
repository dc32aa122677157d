package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockStorageException;
import dev.pglock.RunOutcome;
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
