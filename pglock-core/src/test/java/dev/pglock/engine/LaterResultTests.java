package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A body whose work ends after it has returned. */
class LaterResultTests {

    private final LocalSpace space = new LocalSpace();
    private final LockEngine a = engine("A");
    private final LockEngine b = engine("B");

    private LockEngine engine(String label) {
        return LockEngine.builder(EngineSettings.defaults("later", label, LockStrategy.LOCAL)
                        .withLease(Duration.ofSeconds(2), Duration.ofMillis(300)))
                .store(new LocalStore(StoreIdentity.random("later", label), space))
                .build();
    }

    @AfterEach
    void close() {
        a.close();
        b.close();
    }

    private LockHandle granted(LockRequest request) {
        return a.tryAcquire(request).orElseThrow();
    }

    private boolean isFree() {
        return b.tryAcquire(LockRequest.of("n"))
                .map(lock -> {
                    lock.close();
                    return true;
                })
                .orElse(false);
    }

    private static <T> CompletableFuture<T> run(LockHandle lock, CompletionStage<T> stage) {
        return lock.<T, RuntimeException>executeAsync(() -> stage);
    }

    @Test
    void theLockIsHeldUntilTheStageCompletesAndFreeWhenTheCallerIsTold() throws Exception {
        CompletableFuture<String> body = new CompletableFuture<>();
        LockHandle lock = granted(LockRequest.of("n"));
        CompletableFuture<String> result = lock.<String, RuntimeException>executeAsync(() -> {
            assertThat(LockContext.current()).isSameAs(lock);
            return body;
        });
        CompletableFuture<Boolean> freeForTheCaller = result.thenApply(value -> isFree());
        assertThat(LockContext.currentIfAny()).isEmpty();
        assertThat(isFree()).isFalse();
        assertThatIllegalStateException().isThrownBy(lock::release);
        lock.close();
        assertThat(lock.isHeld()).isTrue();
        body.complete("done");
        assertThat(result.get(5, TimeUnit.SECONDS)).isEqualTo("done");
        assertThat(freeForTheCaller.get(5, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aStageThatHasCompletedAlreadyReleasesAtOnce() {
        assertThat(run(granted(LockRequest.of("n")), CompletableFuture.completedFuture("x")))
                .isCompletedWithValue("x");
        assertThat(isFree()).isTrue();
    }

    @Test
    void aFailureOfTheStageIsTheCallersAndRemembersNoVersion() {
        LockRequest v1 = LockRequest.of("n").version("1");
        CompletableFuture<String> failing = CompletableFuture.supplyAsync(() -> {
            throw new IllegalArgumentException("its own");
        });
        assertThatThrownBy(() -> run(granted(v1), failing).get(5, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(IllegalArgumentException.class);
        assertThat(a.find("n").orElseThrow().lastRun())
                .satisfies(run -> assertThat(String.valueOf(run)).contains(IllegalArgumentException.class.getName()));
        run(granted(v1), CompletableFuture.completedFuture("x")).join();
        assertThat(a.tryAcquire(v1)).isEmpty();
    }

    @Test
    void aBodyThatThrowsOrReturnsNothingReleasesAtOnce() {
        assertThatExceptionOfType(java.io.IOException.class)
                .isThrownBy(() -> granted(LockRequest.of("n")).executeAsync(() -> {
                    throw new java.io.IOException("the job's own");
                }));
        assertThatExceptionOfType(NullPointerException.class)
                .isThrownBy(() -> granted(LockRequest.of("n")).executeAsync(() -> null));
        assertThat(isFree()).isTrue();
    }

    @Test
    void cancellingTheResultCancelsTheBodysStageAndFreesTheLock() {
        CompletableFuture<String> body = new CompletableFuture<>();
        CompletableFuture<String> result = run(granted(LockRequest.of("n").version("1")), body);
        assertThat(result.cancel(true)).isTrue();
        assertThat(body).isCancelled();
        assertThat(result).isCancelled();
        assertThat(a.tryAcquire(LockRequest.of("n").version("1"))).isPresent();
    }

    @Test
    void aStageThatCannotBeCancelledKeepsTheLockUntilItHasEnded() {
        CompletableFuture<String> work = new CompletableFuture<>();
        CompletableFuture<String> result = run(granted(LockRequest.of("n")), work.minimalCompletionStage());
        assertThat(result.cancel(true)).isTrue();
        assertThat(isFree()).isFalse();
        work.complete("late");
        assertThat(isFree()).isTrue();
    }

    @Test
    void aTimeoutOfTheCallersEndsHisWaitingAndNotTheLock() {
        CompletableFuture<String> body = new CompletableFuture<>();
        CompletableFuture<String> result =
                run(granted(LockRequest.of("n")), body).orTimeout(50, TimeUnit.MILLISECONDS);
        assertThatThrownBy(result::join).hasCauseInstanceOf(java.util.concurrent.TimeoutException.class);
        assertThat(isFree()).isFalse();
        body.complete("late");
        assertThat(isFree()).isTrue();
    }

    @Test
    void aLossCancelsTheStageOnAThreadThatIsNotTheHeartbeats() {
        CompletableFuture<String> body = new CompletableFuture<>();
        AtomicReference<String> thread = new AtomicReference<>("");
        CompletableFuture<String> result = run(granted(LockRequest.of("n").maxHold(Duration.ofMillis(300))), body);
        body.whenComplete((v, e) -> thread.set(Thread.currentThread().getName()));
        assertThatThrownBy(() -> result.get(5, TimeUnit.SECONDS)).hasCauseInstanceOf(LockLostException.class);
        assertThat(body).isCancelled();
        assertThat(thread.get()).startsWith("pglock-callback");
        assertThat(a.find("n").orElseThrow().lastRun().toString()).contains("LOST");
    }

    @Test
    void aLossWhileTheBodyItselfRunsInterruptsItAndCancelsWhatItReturns() {
        CompletableFuture<String> body = new CompletableFuture<>();
        LockHandle lock = granted(LockRequest.of("n").maxHold(Duration.ofMillis(300)));
        CompletableFuture<String> result = lock.<String, RuntimeException>executeAsync(() -> {
            while (!Thread.currentThread().isInterrupted()) {
                Thread.onSpinWait();
            }
            return body;
        });
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        await().atMost(Duration.ofSeconds(5)).until(body::isCancelled);
        assertThatThrownBy(result::join).isInstanceOf(CompletionException.class);
    }

    @Test
    void aResultThatComesAllTheSameIsReturnedAfterALossAndRemembersNoVersion() {
        CompletableFuture<String> body = new CompletableFuture<>();
        LockRequest request =
                LockRequest.of("n").version("1").maxHold(Duration.ofMillis(300)).onLost(OnLost.CONTINUE);
        LockHandle lock = granted(request);
        CompletableFuture<String> result = run(lock, body);
        await().atMost(Duration.ofSeconds(5)).until(() -> !lock.isHeld());
        body.complete("late");
        assertThat(result.join()).isEqualTo("late");
        await().atMost(Duration.ofSeconds(5))
                .until(() -> b.tryAcquire(LockRequest.of("n").version("1")).isPresent());
    }

    /** A stage that knows how to end its work, which then ends in its own time. */
    private static final class Obedient extends CompletableFuture<String> {

        private final CountDownLatch asked = new CountDownLatch(1);

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            asked.countDown();
            return true;
        }
    }

    @Test
    void aRegistryThatStopsWaitsForTheStageAndCancelsItInTheEnd() throws Exception {
        Obedient body = new Obedient();
        CompletableFuture<String> result = run(granted(LockRequest.of("n")), body);
        assertThat(a.stop(Duration.ofMillis(50))).isFalse();
        a.interruptBodies();
        assertThat(body.asked.await(5, TimeUnit.SECONDS)).isTrue();
        assertThat(isFree()).as("its work has not ended").isFalse();
        body.completeExceptionally(new CancellationException("asked to"));
        await().atMost(Duration.ofSeconds(5)).until(() -> a.stop(Duration.ofMillis(10)));
        assertThatExceptionOfType(CancellationException.class).isThrownBy(result::join);
        assertThat(isFree()).isTrue();
    }

    /** To cancel such a future is to complete it: the thread that works for it goes on, and needs its lock. */
    @Test
    void workThatCancellingItsFutureDoesNotEndKeepsItsLockWhoeverAsksForIt() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        CompletableFuture<Boolean> body = CompletableFuture.supplyAsync(() -> {
            try {
                return go.await(10, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                throw new CompletionException(e);
            }
        });
        LockHandle lock = granted(LockRequest.of("n"));
        CountDownLatch asked = new CountDownLatch(1);
        lock.onResign(asked::countDown);
        CompletableFuture<Boolean> result = run(lock, body);

        assertThat(b.resign("n", "it shall run elsewhere")).isTrue();
        assertThat(asked.await(5, TimeUnit.SECONDS))
                .as("its own means of ending")
                .isTrue();
        a.interruptBodies();
        assertThat(a.stop(Duration.ofMillis(300))).isFalse();
        assertThat(body).isNotDone();
        assertThat(isFree()).isFalse();

        go.countDown();
        assertThat(result.get(5, TimeUnit.SECONDS)).isTrue();
        assertThat(isFree()).isTrue();
    }

    @Test
    void whatIsKeptWhenTheRegistryClosesIsNotReleasedForItsCancelledStage() {
        CompletableFuture<String> body = new CompletableFuture<>();
        CompletableFuture<String> result = run(granted(LockRequest.of("n")), body);
        a.close();
        assertThatThrownBy(() -> result.get(5, TimeUnit.SECONDS)).hasCauseInstanceOf(LockLostException.class);
        assertThat(body).isCancelled();
        assertThat(isFree()).isFalse();
        await().atMost(Duration.ofSeconds(5)).until(this::isFree);
    }
}
