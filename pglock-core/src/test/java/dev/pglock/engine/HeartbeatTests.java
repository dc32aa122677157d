package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HeartbeatTests {

    private static Heartbeat configured(@Nullable Duration interval) {
        LocalStore store = new LocalStore(StoreIdentity.random("heartbeat", "A"), new LocalSpace());
        Listeners listeners = new Listeners(List.of());
        return new Heartbeat(
                "pglock-test",
                store,
                new Outage(store.strategy(), listeners, () -> {}),
                List.of(),
                interval,
                new LateRenewals(listeners),
                listeners);
    }

    /** Of 500 ms, 300 are trusted: a third of the whole would leave a network and a scheduler 9 ms. */
    @ParameterizedTest
    @ValueSource(longs = {500, 600, 1_000, 2_000, 30_000})
    void whenARenewalIsDueItHasTimeBeforeItIsLateHoweverShortTheLease(long millis) {
        Duration lease = Duration.ofMillis(millis);
        Duration trusted = Tenure.trusted(lease);
        long interval = configured(null).interval(lease);

        Duration left = trusted.minusNanos(interval);

        assertThat(left.minus(trusted.dividedBy(4))).isGreaterThan(Duration.ofMillis(100));
        assertThat(Heartbeat.budget(interval)).as("ends with the trust").isLessThanOrEqualTo(left);
    }

    /** Its trust counts from the question: an interval after the answer would be too late. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aGrantThatWasAnsweredLateIsRenewedBeforeItsTrustEnds(boolean besideAnother) throws Exception {
        Duration lease = Duration.ofSeconds(2);
        FaultyStore store = new FaultyStore(new LocalStore(StoreIdentity.random("heartbeat", "A"), new LocalSpace()));
        try (LockEngine replica = LockEngine.builder(EngineSettings.defaults("heartbeat", "A", LockStrategy.LOCAL)
                        .withLease(lease, null))
                .store(store)
                .build()) {
            if (besideAnother) {
                assertThat(replica.tryAcquire(LockRequest.of("another"))).isPresent();
            }
            CountDownLatch hang = new CountDownLatch(1);
            store.grantsHang = hang;
            CompletableFuture<LockAttempt> attempt = CompletableFuture.supplyAsync(
                    () -> replica.attempt(LockRequest.of("late"), null), task -> new Thread(task).start());
            CompletableFuture.delayedExecutor(1_350, TimeUnit.MILLISECONDS).execute(hang::countDown);
            LockHandle late = ((LockAttempt.Granted) attempt.get(10, TimeUnit.SECONDS)).lock();

            await().pollDelay(lease).until(() -> true);

            assertThat(late.isHeld()).isTrue();
        }
    }

    @Test
    void itIsNeverLessOftenThanConfigured() {
        assertThat(configured(Duration.ofMillis(300)).interval(Duration.ofSeconds(30)))
                .isEqualTo(Duration.ofMillis(300).toNanos());
    }
}
