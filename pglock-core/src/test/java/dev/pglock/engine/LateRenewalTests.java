package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Heartbeats that come just before it would have been too late. */
class LateRenewalTests {

    private static final Duration LEASE = Duration.ofSeconds(6);

    private final Queue<String> told = new ConcurrentLinkedQueue<>();
    private final FaultyStore store =
            new FaultyStore(new LocalStore(StoreIdentity.random("late", "A"), new LocalSpace()));
    private final LockEngine replica = LockEngine.builder(
                    EngineSettings.defaults("late", "A", LockStrategy.LOCAL).withLease(LEASE, null))
            .store(store)
            .listener(new LockListener() {
                @Override
                public void renewedLate(LockHandle lock, Duration left) {
                    assertThat(left).isBetween(Duration.ZERO, LEASE.dividedBy(4));
                    told.add(lock.name());
                }
            })
            .build();

    @AfterEach
    void close() {
        replica.close();
    }

    /** Lets all renewals wait until less than a quarter of the lease is left. */
    private void renewLate(LockHandle lock) {
        CountDownLatch hang = new CountDownLatch(1);
        store.renewalsHang = hang;
        await().pollInterval(Duration.ofMillis(5))
                .atMost(LEASE)
                .until(() -> lock.trustedFor().compareTo(LEASE.dividedBy(4).minusMillis(50)) < 0);
        store.renewalsHang = null;
        hang.countDown();
    }

    @Test
    void manyThatAreLateAtOnceAreOneWarningThatCountsThemAndListenersAreToldOfEach() {
        // So that the first of them is not much older than the last.
        for (int i = 0; i < 500; i++) {
            assertThat(replica.runOnce("warm-up-" + i, () -> {})).isTrue();
        }
        List<LockHandle> locks = IntStream.range(0, 1_200)
                .mapToObj(i -> replica.tryAcquire(LockRequest.of("lock-" + i)).orElseThrow())
                .toList();
        try (CapturedLog log = CapturedLog.of(LateRenewals.class)) {
            renewLate(locks.get(locks.size() - 1));
            await().untilAsserted(() -> assertThat(told).hasSize(1_200));
            await().untilAsserted(() -> assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("WARN Renewals came late for 1200 of the locks held here, 'lock-")
                    .contains("(fence ", " and 1195 more: "));
        }
        assertThat(locks).allMatch(LockHandle::isHeld);
    }

    @Test
    void oneThatIsLateIsNamedAndOneThatIsNotIsNot() {
        LockHandle lock = replica.tryAcquire(LockRequest.of("only")).orElseThrow();
        try (CapturedLog log = CapturedLog.of(LateRenewals.class)) {
            // In time: a third of the lease has passed.
            int before = store.renewStatements.get();
            await().atMost(LEASE).until(() -> store.renewStatements.get() > before);
            assertThat(log.messages()).isEmpty();

            renewLate(lock);
            await().untilAsserted(() -> assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("WARN Renewals came late for 1 of the locks held here, 'only' (fence " + lock.fence()
                            + "): "));
        }
        assertThat(told).containsExactly("only");
        assertThat(lock.isHeld()).isTrue();
    }
}
