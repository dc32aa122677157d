package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockStorageException;
import dev.pglock.RunOutcome;
import dev.pglock.advisory.AdvisoryStore;
import dev.pglock.lease.LeaseStore;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.ServerErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What becomes of each call when the server answers it with an error, by the error's SQLSTATE. */
class ServerErrorTests {

    private static final String NAMESPACE = "test";
    private static final String NAME = "name";
    private static final long KEY = KeyDerivation.SHA256.key(NAMESPACE, NAME);
    private static final int FOR_LONG = 1_000_000;

    private final String role = PostgresServer.shared().newRole();
    private final ReplicaStores stores = ReplicaStores.withTable().as(role);
    private final ServerErrors errors = ServerErrors.on(stores.database(), "pglock_lease", role);
    private final LeaseStore lease = stores.lease(StoreIdentity.random(NAMESPACE, "lease"));
    private final AdvisoryStore advisory = stores.store(StoreIdentity.random(NAMESPACE, "advisory"));

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private interface Call {
        Object make() throws SQLException;
    }

    /** What a caller sees: an answer, the reason of a denial, or FAILED. */
    private static String outcome(Call call) {
        try {
            Object answer = call.make();
            return answer instanceof ClaimAnswer.Denied denied
                    ? denied.denial().reason().name()
                    : answer instanceof ClaimAnswer.Granted ? "GRANTED" : String.valueOf(answer);
        } catch (LockStorageException e) {
            return "FAILED";
        } catch (SQLException e) {
            return e.getSQLState();
        }
    }

    private static Claim claim() {
        return new Claim(NAME, KEY, ReplicaStores.LEASE, null, null);
    }

    private static String renew(LockStore store, long fence) {
        return outcome(() -> store.renew(
                        List.of(new Renewal(NAME, fence, ReplicaStores.LEASE, null)),
                        ReplicaStores.LEASE.dividedBy(3),
                        LockStore.Caller.HEARTBEAT)
                .get(0)
                .result());
    }

    /** With a version, so that an advisory lock has something to remember as well. */
    private static String release(LockStore store, long fence) {
        return outcome(
                () -> store.release(new Release(NAME, KEY, fence, RunOutcome.SUCCEEDED, null, null, "1", false)));
    }

    /** The server may take a moment to notice that a session which failed before has gone, and its key with it. */
    private static long fence(LockStore store) {
        ClaimAnswer[] answer = new ClaimAnswer[1];
        await().atMost(ReplicaStores.LEASE).until(() -> {
            answer[0] = store.claim(claim());
            return answer[0] instanceof ClaimAnswer.Granted;
        });
        return ((ClaimAnswer.Granted) answer[0]).fence();
    }

    /** So that there is a row for a claim to meet. */
    private void freshRow() {
        errors.stop();
        stores.database().execute("DELETE FROM pglock_lease");
        stores.database()
                .execute("INSERT INTO pglock_lease (namespace, name, fence, acquired_at, expires_at, released_at)"
                        + " VALUES ('test', 'name', 1, now(), now() + interval '1 microsecond', now())");
    }

    @ParameterizedTest
    @CsvSource({
        // One session is replaced, and nobody notices; those that carry advisory locks are lost with all of them.
        "08006, GRANTED,  RENEWED, true,   GRANTED,  SESSION_ENDED, false",
        "57P01, GRANTED,  RENEWED, true,   GRANTED,  SESSION_ENDED, false",
        "57P02, GRANTED,  RENEWED, true,   GRANTED,  SESSION_ENDED, false",
        "57P03, GRANTED,  RENEWED, true,   GRANTED,  SESSION_ENDED, false",
        "25006, GRANTED,  RENEWED, true,   GRANTED,  SESSION_ENDED, false",
        // The same again.
        "26000, GRANTED,  RENEWED, true,   GRANTED,  RENEWED,       true",
        "42P05, GRANTED,  RENEWED, true,   GRANTED,  RENEWED,       true",
        "40001, GRANTED,  RENEWED, true,   GRANTED,  RENEWED,       true",
        "40P01, GRANTED,  RENEWED, true,   GRANTED,  RENEWED,       true",
        // Somebody else has it, as far as a claim is concerned. No row is in the way of an advisory lock's heartbeat.
        "55P03, KEY_BUSY, FAILED,  true,   KEY_BUSY, RENEWED,       true",
        "57014, KEY_BUSY, FAILED,  true,   KEY_BUSY, RENEWED,       true",
        // Reported.
        "53300, FAILED,   FAILED,  FAILED, FAILED,   RENEWED,       FAILED",
        "22012, FAILED,   FAILED,  FAILED, FAILED,   RENEWED,       FAILED"
    })
    void anErrorThatComesOnce(
            String state,
            String leaseClaim,
            String leaseRenewal,
            String leaseRelease,
            String advisoryClaim,
            String advisoryRenewal,
            String advisoryRelease) {
        SoftAssertions softly = new SoftAssertions();

        freshRow();
        errors.raise(state, 1);
        softly.assertThat(outcome(() -> lease.claim(claim()))).as("claim").isEqualTo(leaseClaim);
        softly.assertThat(errors.raised()).isEqualTo(1);
        freshRow();
        long fence = fence(lease);
        errors.raise(state, 1);
        softly.assertThat(renew(lease, fence)).as("renewal").isEqualTo(leaseRenewal);
        softly.assertThat(renew(lease, fence)).as("renewal after it").isEqualTo("RENEWED");
        errors.raise(state, 1);
        softly.assertThat(release(lease, fence)).as("release").isEqualTo(leaseRelease);

        freshRow();
        errors.raise(state, 1);
        softly.assertThat(outcome(() -> advisory.claim(claim())))
                .as("advisory claim")
                .isEqualTo(advisoryClaim);
        softly.assertThat(errors.raised()).isEqualTo(1);
        freshRow();
        fence = fence(advisory);
        errors.raise(state, 1);
        softly.assertThat(renew(advisory, fence)).as("advisory renewal").isEqualTo(advisoryRenewal);
        softly.assertThat(renew(advisory, fence))
                .as("advisory renewal after it")
                .isEqualTo(advisoryRenewal.equals("SESSION_ENDED") ? "SESSION_ENDED" : "RENEWED");
        freshRow();
        fence = fence(advisory);
        errors.raise(state, 1);
        softly.assertThat(release(advisory, fence)).as("advisory release").isEqualTo(advisoryRelease);

        softly.assertAll();
    }

    /** Whatever a release meets, the key of a lock that is over is given back soon, not by the end of the session. */
    @ParameterizedTest
    @ValueSource(strings = {"40001", "55P03", "57014", "53300", "22012"})
    void aKeyWhoseReleaseFailedIsGivenBackByWhoeverSpeaksNext(String state) {
        freshRow();
        long fence = fence(advisory);
        errors.raise(state, FOR_LONG);
        assertThat(release(advisory, fence)).isEqualTo("FAILED");
        assertThat(advisory.untilTidyUp()).as("is planned at once").isEqualTo(Duration.ZERO);

        advisory.tidyUp();

        assertThat(stores.keysHeld()).isZero();
    }

    /** It is never read as "held by another", is not asked for without an end, and is over when it is over. */
    @ParameterizedTest
    @CsvSource({
        "08006, FAILED,   2",
        "57P01, FAILED,   2",
        "57P02, FAILED,   2",
        "57P03, FAILED,   2",
        "25006, FAILED,   2",
        "26000, FAILED,   5",
        "42P05, FAILED,   5",
        "40001, FAILED,   5",
        "40P01, FAILED,   5",
        "55P03, KEY_BUSY, 1",
        "57014, KEY_BUSY, 1",
        "53300, FAILED,   1",
        "22012, FAILED,   1"
    })
    void anErrorThatGoesOn(String state, String claim, int attemptsAtMost) {
        for (LockStore store : List.of(lease, advisory)) {
            freshRow();
            errors.raise(state, FOR_LONG);
            assertThat(outcome(() -> store.claim(claim()))).isEqualTo(claim);
            assertThat(errors.raised()).isBetween(1L, (long) attemptsAtMost);
            freshRow();

            long fence = fence(store);
            errors.raise(state, FOR_LONG);
            assertThat(renew(store, fence))
                    .isIn(store == lease ? List.of("FAILED") : List.of("FAILED", "SESSION_ENDED", "RENEWED"));
            assertThat(release(store, fence)).isIn("FAILED", "false");

            errors.stop();
            assertThat(release(store, fence(store))).isEqualTo("true");
            assertThat(stores.keysHeld()).isZero();
        }
    }

    /**
     * The transaction that is about to commit fails with the error, whatever it is; only what is asked on a connection of
     * ours, because that transaction cannot see it, may be asked again.
     */
    @ParameterizedTest
    @CsvSource({
        "08006, passes",
        "57P01, passes",
        "57P02, passes",
        "57P03, passes",
        "25006, passes",
        "26000, passes",
        "42P05, passes",
        "40001, passes",
        "40P01, passes",
        "55P03, 55P03",
        "57014, 57014",
        "53300, 53300"
    })
    void anErrorJustBeforeACommit(String state, String underRepeatableRead) throws SQLException {
        freshRow();
        LockStore.Tenancy held = new LockStore.Tenancy(NAME, KEY, fence(lease));
        for (int isolation :
                new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ}) {
            try (Connection transaction = stores.database().direct(role, role)) {
                transaction.setTransactionIsolation(isolation);
                transaction.setAutoCommit(false);
                errors.raise(state, 1);

                Throwable failure = catchThrowable(() -> lease.checkCommit(transaction, held));

                String told = failure == null ? "passes" : ((SQLException) failure).getSQLState();
                assertThat(told)
                        .isEqualTo(isolation == Connection.TRANSACTION_READ_COMMITTED ? state : underRepeatableRead);
                transaction.rollback();
                lease.checkCommit(transaction, held);
                transaction.commit();
            }
        }
    }
}
