package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What happens to one lock at the same moment, on several threads. */
class HandleRaceTests {

    private static final int RACES = 3_000;

    private final LocalSpace space = new LocalSpace();
    private final FaultyStore store = new FaultyStore(new LocalStore(StoreIdentity.random("race", "A"), space));
    private final LockEngine replica = engine(store, "A");
    private final LockEngine other = engine(new LocalStore(StoreIdentity.random("race", "B"), space), "B");

    private static LockEngine engine(dev.pglock.store.LockStore store, String label) {
        return LockEngine.builder(EngineSettings.defaults("race", label, LockStrategy.LOCAL))
                .store(store)
                .build();
    }

    @AfterEach
    void close() {
        replica.close();
        other.close();
    }

    @Test
    void whoClosesAHandleKeepsItsBodyFromBeginningOrLeavesTheLockToIt() throws Exception {
        CyclicBarrier start = new CyclicBarrier(2);
        LockHandle[] current = new LockHandle[1];
        List<Integer> ran = Concurrently.run(2, thread -> () -> {
            int bodies = 0;
            for (int i = 0; i < RACES; i++) {
                if (thread == 0) {
                    current[0] = replica.tryAcquire(LockRequest.of("name " + i)).orElseThrow();
                }
                start.await();
                LockHandle lock = current[0];
                if (thread == 0) {
                    bodies += runs(lock) ? 1 : 0;
                } else {
                    lock.close();
                }
                start.await();
            }
            return bodies;
        });

        assertThat(ran.get(0)).as("both must happen").isBetween(1, RACES - 1);
        assertThat(replica.status().get(0).held()).isZero();
    }

    private static boolean runs(LockHandle lock) {
        try {
            return lock.<Boolean, RuntimeException>execute(() -> {
                assertThat(lock.isHeld()).as("at its start").isTrue();
                for (int i = 0; i < 200; i++) {
                    Thread.onSpinWait();
                }
                assertThat(lock.isHeld()).as("at its end").isTrue();
                return true;
            });
        } catch (IllegalStateException e) {
            return false;
        }
    }

    @Test
    void whatIsGrantedToAReplicaThatHasClosedIsGivenBackAndNobodyRunsUnderIt() throws Exception {
        CountDownLatch hang = new CountDownLatch(1);
        store.grantsHang = hang;
        CompletableFuture<LockAttempt> attempt = CompletableFuture.supplyAsync(
                () -> replica.attempt(LockRequest.of("name"), null), task -> new Thread(task).start());
        await().until(() -> store.claims.get() == 1);

        replica.close();
        hang.countDown();

        assertThat(attempt.join())
                .isInstanceOfSatisfying(
                        LockAttempt.Denied.class,
                        denied -> assertThat(denied.denial().reason()).isEqualTo(DenialReason.STOPPING));
        assertThat(replica.status().get(0).held()).isZero();
        assertThat(other.tryAcquire(LockRequest.of("name"))).isPresent();
    }
}
