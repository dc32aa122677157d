package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** When an outage is told to begin and to end: once each. */
class OutageToldOnceTests {

    private final List<String> told = new CopyOnWriteArrayList<>();

    private final LockListener listener = new LockListener() {
        @Override
        public void outageBegan(LockStrategy strategy, LockStorageException cause) {
            told.add("began");
        }

        @Override
        public void outageEnded(LockStrategy strategy, Duration lasted) {
            told.add("ended");
        }
    };

    private final Listeners listeners = new Listeners(List.of(listener));
    private final Outage outage = new Outage(LockStrategy.LEASE, listeners);

    private void fail() {
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    throw new LockStorageException("cut off", null);
                }));
    }

    private void answer() {
        assertThat(outage.observe(() -> "answer")).isEqualTo("answer");
    }

    private void assertTold(String... events) {
        listeners.close(5_000);
        assertThat(told).containsExactly(events);
    }

    @Test
    void manyFailuresAreOneOutage() {
        answer();
        fail();
        fail();
        answer();
        answer();
        assertTold("began", "ended");
    }

    @Test
    void anAnswerToWhatWasAskedBeforeTheOutageDoesNotEndIt() {
        String late = outage.observe(() -> {
            fail();
            return "late";
        });
        assertThat(late).isEqualTo("late");
        assertThat(outage.lasting()).isNotNull();
        fail();
        answer();
        assertTold("began", "ended");
    }

    @Test
    void aFailureOfWhatWasAskedBeforeTheOutageEndedBeginsNoOther() {
        fail();
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    answer();
                    throw new LockStorageException("timed out on a connection that was cut off", null);
                }));
        assertThat(outage.lasting()).isNull();
        assertTold("began", "ended");
    }

    @Test
    void whatIsKnownWithoutAskingIsNoSignOfLife() {
        fail();
        assertThat(outage.observe(() -> false, answer -> answer)).isFalse();
        assertThat(outage.lasting()).isNotNull();
        assertTold("began");
    }

    /** Its session has ended: that several locks are lost with it is known one after the other, without the database. */
    @Test
    void locksThatAreLostAndReleasedDuringAnOutageDoNotEndIt() throws Exception {
        String role = PostgresServer.shared().newRole();
        try (ReplicaStores stores = ReplicaStores.withoutTable().as(role);
                CapturedLog log = CapturedLog.of(Outage.class);
                LockEngine replica = LockEngine.builder(EngineSettings.defaults("outage", "A", LockStrategy.ADVISORY)
                                .withLease(ReplicaStores.LEASE, null))
                        .store(stores.store(StoreIdentity.random("outage", "A")))
                        .listener(listener)
                        .build()) {
            LockHandle first = replica.tryAcquire(LockRequest.of("first")).orElseThrow();
            LockHandle second = replica.tryAcquire(LockRequest.of("second")).orElseThrow();
            stores.database().execute("ALTER ROLE " + role + " CONNECTION LIMIT 0");
            assertThat(stores.database().terminate("pglock:%")).isPositive();

            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> replica.tryAcquire(LockRequest.of("third")));
            assertThat(first.release()).isFalse();
            await().until(() -> !second.isHeld());
            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> replica.tryAcquire(LockRequest.of("third")));
            stores.database().execute("ALTER ROLE " + role + " CONNECTION LIMIT -1");
            replica.tryAcquire(LockRequest.of("third")).orElseThrow().close();

            await().untilAsserted(() -> assertThat(told).containsExactly("began", "ended"));
            assertThat(log.messages())
                    .satisfiesExactly(
                            warning -> assertThat(warning).startsWith("WARN The database of the advisory locks fails"),
                            end -> assertThat(end).startsWith("INFO The database of the advisory locks works again"));
        }
    }
}
