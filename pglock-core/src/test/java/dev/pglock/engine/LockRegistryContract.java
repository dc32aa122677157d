package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import dev.pglock.CompletedVersion;
import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockInfo;
import dev.pglock.LockListener;
import dev.pglock.LockLostException;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockTimeoutException;
import dev.pglock.LossReason;
import dev.pglock.OnLost;
import dev.pglock.RunOutcome;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.CapturedLog;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * What a registry promises, whatever store it stands on. Two registries over one storage are two replicas; leases last
 * two seconds and are renewed every 300 ms.
 */
@Execution(ExecutionMode.CONCURRENT)
abstract class LockRegistryContract {

    static final Duration LEASE = Duration.ofSeconds(2);
    static final Duration HEARTBEAT = Duration.ofMillis(300);

    private final String namespace = "contract-" + UUID.randomUUID();
    private final List<LockEngine> engines = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    final List<String> events = new CopyOnWriteArrayList<>();

    /** What happens too often to be among the events. */
    private final List<String> calls = new CopyOnWriteArrayList<>();

    FaultyStore storeA;
    LockEngine a;
    LockEngine b;

    /** Another replica's store over the same storage. */
    abstract LockStore newStore(StoreIdentity identity, Duration lease);

    /** What wakes another replica's waiters. */
    abstract WakeUps newWakeUps(String label);

    @BeforeEach
    void startTwoReplicas() {
        storeA = new FaultyStore(newStore(StoreIdentity.random(namespace, "A"), LEASE));
        a = engine(storeA, "A");
        b = engine(newStore(StoreIdentity.random(namespace, "B"), LEASE), "B");
    }

    private LockEngine engine(LockStore store, String label) {
        return engine(store, label, new Recorder(label));
    }

    private LockEngine engine(LockStore store, String label, LockListener listener) {
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(namespace, label, store.strategy())
                        .withLease(LEASE, HEARTBEAT))
                .store(store)
                .wakeUps(newWakeUps(label))
                .listener(listener)
                .build();
        engines.add(engine);
        return engine;
    }

    @AfterEach
    void stopReplicas() {
        engines.forEach(LockEngine::close);
        threads.shutdownNow();
    }

    private final class Recorder implements LockListener {

        private final String label;

        Recorder(String label) {
            this.label = label;
        }

        @Override
        public void lost(LockHandle lock, LossReason reason) {
            events.add(label + " lost " + lock.name() + " " + reason);
            throw new IllegalStateException("a listener that throws changes nothing");
        }

        @Override
        public void denied(dev.pglock.Denial denial) {
            calls.add(label + " denied " + denial.name());
        }

        @Override
        public void settled(dev.pglock.Acquisition acquisition) {
            calls.add(label + " settled " + acquisition.request().name() + " " + acquisition.outcome()
                    + (acquisition.waited() && acquisition.outcome() != dev.pglock.Acquisition.Outcome.HELD
                            ? " waited"
                            : ""));
        }

        @Override
        public void ended(LockHandle lock, dev.pglock.TenureEnd end) {
            calls.add(label + " ended " + lock.name() + " " + end.outcome() + " " + end.release());
        }

        @Override
        public void resigning(LockHandle lock, String reason) {
            calls.add(label + " resigning " + lock.name() + ": " + reason);
        }

        @Override
        public void heartbeat(dev.pglock.LockStrategy strategy, boolean succeeded, Duration took) {
            calls.add(label + " heartbeat");
        }

        @Override
        public void released(LockHandle lock, RunOutcome outcome) {
            events.add(label + " released " + lock.name() + " " + outcome);
        }

        @Override
        public void outageBegan(dev.pglock.LockStrategy strategy, LockStorageException cause) {
            events.add(label + " outage began");
        }

        @Override
        public void outageEnded(dev.pglock.LockStrategy strategy, Duration lasted) {
            events.add(label + " outage ended");
        }
    }

    static LockHandle granted(LockRegistry registry, LockRequest request) {
        return registry.tryAcquire(request).orElseThrow();
    }

    static LockHandle granted(LockRegistry registry, String name) {
        return granted(registry, LockRequest.of(name));
    }

    static DenialReason denied(LockRegistry registry, LockRequest request) {
        LockAttempt attempt = registry.attempt(request);
        assertThat(attempt).isInstanceOf(LockAttempt.Denied.class);
        return ((LockAttempt.Denied) attempt).denial().reason();
    }

    static DenialReason denied(LockRegistry registry, String name) {
        return denied(registry, LockRequest.of(name));
    }

    @Test
    void aNameIsHeldByOneReplicaAtATime() {
        LockHandle lock = granted(a, "n");
        assertThat(denied(b, "n")).isEqualTo(DenialReason.HELD);
        assertThat(lock.release()).isTrue();
        LockHandle next = granted(b, "n");
        assertThat(next.fence()).isGreaterThan(lock.fence());
        assertThat(next.release()).isTrue();
    }

    @Test
    void insideOneReplicaANameIsHeldOnceWithoutAskingTheDatabase() {
        LockHandle lock = granted(a, "n");
        int claims = storeA.claims.get();
        LockAttempt.Denied denied = (LockAttempt.Denied) a.attempt(LockRequest.of("n"));
        assertThat(denied.denial().reason()).isEqualTo(DenialReason.HELD);
        assertThat(denied.denial().holder()).isEqualTo("A");
        assertThat(storeA.claims).hasValue(claims);
        lock.close();
        granted(a, "n").close();
    }

    @Test
    void heartbeatsKeepALockForLongerThanItsLease() {
        LockHandle lock = granted(a, "n");
        Instant first = lock.expiresAt();
        await().during(Duration.ofSeconds(3))
                .atMost(Duration.ofSeconds(6))
                .pollInterval(Duration.ofMillis(100))
                .until(() -> lock.isHeld() && b.tryAcquire(LockRequest.of("n")).isEmpty());
        assertThat(lock.expiresAt()).isAfter(first.plusSeconds(2));
        assertThat(lock.release()).isTrue();
        assertThat(events).containsExactly("A released n SUCCEEDED");
    }

    @Test
    void oneFailedHeartbeatIsRetriedAndLosesNothing() {
        LockHandle lock = granted(a, "n");
        storeA.failRenewals = true;
        int before = storeA.renewStatements.get();
        await().until(() -> storeA.renewStatements.get() >= before + 2);
        storeA.failRenewals = false;
        Instant expiry = lock.expiresAt();
        await().atMost(Duration.ofSeconds(2)).until(() -> lock.expiresAt().isAfter(expiry));
        assertThat(lock.isHeld()).isTrue();
        await().untilAsserted(() -> assertThat(events).containsExactly("A outage began", "A outage ended"));
    }

    @Test
    void aHolderThatCannotRenewKnowsItsLossBeforeAnotherIsGranted() throws Exception {
        AtomicInteger interrupts = new AtomicInteger();
        AtomicReference<Long> lostAt = new AtomicReference<>();
        CountDownLatch running = new CountDownLatch(1);
        LockHandle lock = granted(a, "n");
        lock.onLost(() -> lostAt.compareAndSet(null, System.nanoTime()));
        Future<String> body = threads.submit(() -> lock.execute(() -> {
            running.countDown();
            while (lock.isHeld()) {
                try {
                    Thread.sleep(10);
                } catch (InterruptedException e) {
                    interrupts.incrementAndGet();
                }
            }
            try {
                Thread.sleep(200);
            } catch (InterruptedException e) {
                interrupts.incrementAndGet();
            }
            return "a result that comes all the same";
        }));
        assertThat(running.await(10, TimeUnit.SECONDS)).isTrue();
        storeA.renewalsHang = new CountDownLatch(1);
        try {
            LockHandle next = b.acquire(LockRequest.of("n").waitTimeout(Duration.ofSeconds(10)));
            long grantedAt = System.nanoTime();
            assertThat(lock.isHeld()).isFalse();
            assertThat(lostAt.get()).isNotNull().isLessThan(grantedAt);
            assertThat(body.get(5, TimeUnit.SECONDS)).isEqualTo("a result that comes all the same");
            assertThat(interrupts).hasValue(1);
            await().untilAsserted(() -> assertThat(events).contains("A lost n EXPIRED"));
            assertThat(events).doesNotContain("A released n SUCCEEDED");
            assertThat(next.isHeld()).isTrue();
            assertThatExceptionOfType(LockLostException.class).isThrownBy(lock::ensureHeld);
        } finally {
            storeA.renewalsHang.countDown();
        }
    }

    @Test
    void anAnswerThatComesAfterTheTrustHasEndedRevivesNothing() {
        LockHandle lock = granted(a, "n");
        CountDownLatch hang = new CountDownLatch(1);
        storeA.renewalsHang = hang;
        await().atMost(Duration.ofSeconds(4)).until(() -> !lock.isHeld());
        int statements = storeA.renewStatements.get();
        storeA.renewalsHang = null;
        hang.countDown();
        LockHandle other = granted(a, "other");
        await().atMost(Duration.ofSeconds(4)).until(() -> storeA.renewStatements.get() > statements);
        assertThat(lock.isHeld()).isFalse();
        assertThat(other.isHeld()).isTrue();
    }

    @Test
    void aLateReleaseNeverFreesTheNextHolder() throws Exception {
        LockHandle lock = granted(a, "n");
        storeA.failRenewals = true;
        LockHandle next = b.acquire(LockRequest.of("n").waitTimeout(Duration.ofSeconds(10)));
        assertThat(lock.release()).isFalse();
        assertThat(next.isHeld()).isTrue();
        LockEngine c = engine(newStore(StoreIdentity.random(namespace, "C"), LEASE), "C");
        assertThat(denied(c, "n")).isEqualTo(DenialReason.HELD);
        assertThat(next.release()).isTrue();
    }

    @Test
    void aLostNameStaysTakenInsideTheProcessUntilItsBodyHasEnded() {
        LockHandle lock = granted(a, LockRequest.of("n").onLost(OnLost.CONTINUE));
        storeA.failRenewals = true;
        await().atMost(Duration.ofSeconds(4)).until(() -> !lock.isHeld());
        storeA.failRenewals = false;
        assertThat(denied(a, "n")).isEqualTo(DenialReason.HELD);
        lock.close();
        await().atMost(Duration.ofSeconds(4))
                .until(() -> a.tryAcquire(LockRequest.of("n")).isPresent());
    }

    @Test
    void aBodyThatHangsLosesItsLockAfterMaxHold() throws Exception {
        CompletableFuture<Long> interruptedAfter = new CompletableFuture<>();
        long begin = System.nanoTime();
        LockRequest request = LockRequest.of("n").maxHold(Duration.ofMillis(700));
        threads.submit(() -> granted(a, request).execute(() -> {
            try {
                Thread.sleep(60_000);
            } catch (InterruptedException e) {
                interruptedAfter.complete(System.nanoTime() - begin);
            }
            return null;
        }));
        assertThat(interruptedAfter.get(5, TimeUnit.SECONDS)).isGreaterThanOrEqualTo(700_000_000L);
        LockHandle next = b.acquire(LockRequest.of("n").waitTimeout(Duration.ofSeconds(5)));
        assertThat(next.isHeld()).isTrue();
        await().untilAsserted(() -> assertThat(events).contains("A lost n MAX_HOLD"));
    }

    @Test
    void aBodyThatOutlivesItsLockKeepsNobodyOutWhateverElseItsReplicaHolds() throws Exception {
        LockHandle other = granted(a, "other");
        LockHandle lock =
                granted(a, LockRequest.of("n").maxHold(Duration.ofMillis(700)).onLost(OnLost.CONTINUE));
        CountDownLatch body = new CountDownLatch(1);
        Future<?> hangs = threads.submit(() -> lock.execute(() -> body.await(30, TimeUnit.SECONDS)));

        LockHandle next = b.acquire(LockRequest.of("n").waitTimeout(LEASE.multipliedBy(2)));

        assertThat(hangs.isDone()).isFalse();
        assertThat(other.isHeld()).isTrue();
        body.countDown();
        hangs.get(5, TimeUnit.SECONDS);
        assertThat(next.isHeld()).isTrue();
        next.ensureHeld();
        assertThat(next.release()).isTrue();
        assertThat(other.release()).isTrue();
    }

    @Test
    void aLockIsKeptForItsMinimumHoldWithoutItsHolder() throws Exception {
        Duration minHold = Duration.ofMillis(1500);
        long begin = System.nanoTime();
        assertThat(a.runOnce(LockRequest.of("n").minHold(minHold), () -> {})).isTrue();
        assertThat(denied(b, "n")).isEqualTo(DenialReason.HOLD);
        assertThat(denied(a, "n")).isEqualTo(DenialReason.HOLD);
        assertThat(b.find("n").orElseThrow().state()).isEqualTo(LockState.HOLD);
        b.acquire(LockRequest.of("n").waitTimeout(Duration.ofSeconds(5))).close();
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isGreaterThan(minHold.minusMillis(100));
    }

    @Test
    void waitingEndsWithTheLockOrWithATimeoutThatNamesTheHolder() throws Exception {
        LockHandle lock = granted(a, "n");
        assertThatExceptionOfType(LockTimeoutException.class)
                .isThrownBy(() -> b.acquire(LockRequest.of("n").waitTimeout(Duration.ofMillis(300))))
                .withMessageContaining("'n'")
                .withMessageContaining("'A'");
        Future<LockHandle> waiter = threads.submit(() -> b.acquire(LockRequest.of("n")));
        assertThat(lock.release()).isTrue();
        assertThat(waiter.get(5, TimeUnit.SECONDS).isHeld()).isTrue();
    }

    @Test
    void waitersInsideOneReplicaAreServedInTheirOrder() throws Exception {
        LockHandle lock = granted(a, "n");
        List<Integer> order = new CopyOnWriteArrayList<>();
        List<Thread> waiters = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            int number = i;
            Thread waiter = new Thread(() -> {
                try {
                    a.runBlocking("n", () -> order.add(number));
                } catch (InterruptedException e) {
                    order.add(-number);
                }
            });
            waiter.start();
            await().until(() -> waiter.getState() == Thread.State.TIMED_WAITING);
            waiters.add(waiter);
        }
        lock.close();
        for (Thread waiter : waiters) {
            waiter.join(10_000);
        }
        assertThat(order).containsExactly(0, 1, 2, 3, 4);
    }

    @Test
    void aReleaseWakesAWaiterOnAnotherReplica() throws Exception {
        LockHandle lock = granted(a, "n");
        CompletableFuture<Long> grantedAt = new CompletableFuture<>();
        Thread waiter = new Thread(() -> {
            try (LockHandle its = b.acquire(LockRequest.of("n"))) {
                grantedAt.complete(System.nanoTime());
            } catch (InterruptedException e) {
                grantedAt.completeExceptionally(e);
            }
        });
        waiter.start();
        await().until(() -> waiter.getState() == Thread.State.TIMED_WAITING);
        long released = System.nanoTime();
        lock.close();
        assertThat(Duration.ofNanos(grantedAt.get(10, TimeUnit.SECONDS) - released))
                .as("below the poll")
                .isLessThan(Duration.ofSeconds(1));
    }

    @Test
    void anInterruptEndsAWaitAndLeavesNothingBehind() throws Exception {
        LockHandle lock = granted(a, "n");
        CountDownLatch ended = new CountDownLatch(1);
        AtomicBoolean interrupted = new AtomicBoolean();
        Thread waiter = new Thread(() -> {
            try {
                b.acquire(LockRequest.of("n"));
            } catch (InterruptedException e) {
                interrupted.set(true);
            }
            ended.countDown();
        });
        waiter.start();
        await().until(() -> waiter.getState() == Thread.State.TIMED_WAITING);
        waiter.interrupt();
        assertThat(ended.await(2, TimeUnit.SECONDS)).isTrue();
        assertThat(interrupted).isTrue();
        lock.close();
        assertThat(a.find("n").stream()).allMatch(info -> info.state() == LockState.FREE);
        granted(a, "n").close();
        granted(b, "n").close();
    }

    @Test
    void theBodysExceptionWinsOverAFailureToRelease() {
        LockHandle lock = granted(a, "n");
        storeA.failReleases = true;
        assertThatExceptionOfType(java.io.IOException.class)
                .isThrownBy(() -> lock.execute(() -> {
                    throw new java.io.IOException("the job's own");
                }))
                .satisfies(e -> assertThat(e.getSuppressed()).hasAtLeastOneElementOfType(LockStorageException.class));
        LockHandle other = granted(a, "other");
        assertThat(other.<String, RuntimeException>execute(() -> "result")).isEqualTo("result");
    }

    @Test
    void whatCouldNotBeReleasedIsTakenAgainByTheSameReplicaAtOnceAndByOthersAfterItsLease() throws Exception {
        LockHandle lock = granted(a, "n");
        storeA.failReleases = true;
        lock.close();
        storeA.failReleases = false;
        assertThat(denied(b, "n")).isEqualTo(DenialReason.HELD);
        LockHandle again = granted(a, "n");
        assertThat(again.fence()).isGreaterThan(lock.fence());
        again.close();
        granted(b, "n").close();
    }

    @Test
    void aBodyKnowsItsLocksAndNothingStaysOnTheThread() {
        LockHandle outer = granted(a, "outer");
        outer.<Object, RuntimeException>execute(() -> {
            assertThat(LockContext.current()).isSameAs(outer);
            LockHandle inner = granted(a, "inner");
            inner.<Object, RuntimeException>execute(() -> {
                assertThat(LockContext.current()).isSameAs(inner);
                assertThat(LockContext.requireHeld("outer")).isSameAs(outer);
                return null;
            });
            assertThat(LockContext.current()).isSameAs(outer);
            assertThatExceptionOfType(LockNotAcquiredException.class)
                    .isThrownBy(() -> LockContext.requireHeld("inner"));
            return null;
        });
        assertThatIllegalStateException().isThrownBy(LockContext::current);
        assertThat(a.findAll()).extracting(LockInfo::state).doesNotContain(LockState.HELD);
    }

    @Test
    void aHandleRunsOneBodyAndNoneAfterItsRelease() {
        LockHandle lock = granted(a, "n");
        lock.<Object, RuntimeException>execute(() -> {
            assertThatIllegalStateException().isThrownBy(() -> lock.execute(() -> null));
            return null;
        });
        assertThatIllegalStateException().isThrownBy(() -> lock.execute(() -> null));
        assertThat(lock.release()).isFalse();
    }

    @Test
    void noInterruptOfOursStaysOnTheThreadAfterTheBody() throws Exception {
        Future<Boolean> flag = threads.submit(() -> {
            LockHandle lock = granted(a, LockRequest.of("n").maxHold(Duration.ofMillis(300)));
            lock.<Object, RuntimeException>execute(() -> {
                while (!Thread.currentThread().isInterrupted()) {
                    Thread.onSpinWait();
                }
                return null;
            });
            return Thread.currentThread().isInterrupted();
        });
        assertThat(flag.get(5, TimeUnit.SECONDS)).isFalse();
    }

    @Test
    void aSuccessfulVersionIsRememberedAndAFailedOneIsNot() {
        LockRequest v1 = LockRequest.of("n").version("1");
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> a.runOnce(v1, () -> {
                    throw new IllegalArgumentException("failed");
                }));
        assertThat(b.runOnce(v1, () -> {})).isTrue();
        assertThat(denied(a, v1)).isEqualTo(DenialReason.DONE);
        assertThatExceptionOfType(LockNotAcquiredException.class)
                .isThrownBy(() -> a.acquire(v1))
                .satisfies(e -> assertThat(e.reason()).isEqualTo(DenialReason.DONE));
        assertThat(a.runOnce(LockRequest.of("n").version("2"), () -> {})).isTrue();
        assertThat(a.runOnce("n", () -> {})).isTrue();
    }

    @Test
    void aVersionTellsWhenByWhomAndInWhatTimeItWasDone() {
        assertThat(a.runOnce(
                        LockRequest.of("n").version("1"),
                        () -> await().pollDelay(Duration.ofMillis(150)).until(() -> true)))
                .isTrue();
        assertThat(b.runOnce(LockRequest.of("n").version("2"), () -> {})).isTrue();
        assertThat(a.runOnce("n", () -> {})).isTrue();
        List<CompletedVersion> completed = b.find("n").orElseThrow().completed();
        assertThat(completed).extracting(CompletedVersion::version).containsExactly("1", "2");
        assertThat(completed).extracting(CompletedVersion::holder).containsExactly("A", "B");
        assertThat(completed.get(0).took()).isBetween(Duration.ofMillis(150), Duration.ofSeconds(5));
        assertThat(completed.get(0).finishedAt())
                .isNotNull()
                .isBeforeOrEqualTo(completed.get(1).finishedAt());
        assertThat(b.findAll())
                .filteredOn(info -> info.name().equals("n"))
                .allSatisfy(info -> assertThat(info.completed()).isEqualTo(completed));
        try (LockHandle lock = granted(a, "n")) {
            assertThat(lock.isHeld()).isTrue();
            assertThat(b.find("n").orElseThrow().completed()).isEqualTo(completed);
        }
    }

    @Test
    void aVersionIsWhateverTextANameMayBe() {
        List<String> versions = List.of(
                "NULL",
                "{}",
                "a,b",
                "\"",
                "\\",
                "'",
                " 1 ",
                "{\"x\": 1}",
                "$1 ? :v %s",
                "é\uD83D\uDE00\n",
                "x".repeat(255));
        for (String version : versions) {
            LockRequest request = LockRequest.of("n").version(version);
            assertThat(a.runOnce(request, () -> {})).as(version).isTrue();
            assertThat(b.runOnce(request, () -> {})).as(version).isFalse();
        }
        assertThat(b.find("n").orElseThrow().completed())
                .extracting(CompletedVersion::version)
                .isEqualTo(versions);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LockRequest.of("n").version("x".repeat(300)))
                .withMessageContaining("version");
    }

    @Test
    void aSuccessThatCouldNotBeRememberedIsRepeated() {
        LockRequest v1 = LockRequest.of("n").version("1");
        storeA.failReleases = true;
        assertThat(a.runOnce(v1, () -> events.add("ran on A"))).isTrue();
        storeA.failReleases = false;
        assertThat(a.runOnce(v1, () -> events.add("ran again on A"))).isTrue();
        assertThat(a.runOnce(v1, () -> events.add("and again on A"))).isFalse();
        assertThat(events).contains("ran on A", "ran again on A").doesNotContain("and again on A");
    }

    @Test
    void whoWaitsForAVersionGoesOnWithoutRunningItWhenItIsDone() throws Exception {
        LockRequest v1 = LockRequest.of("n").version("1").waitTimeout(LockRequest.UNLIMITED);
        LockHandle running = granted(a, v1);
        List<Future<?>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(threads.submit(() -> {
                b.runBlocking(v1, () -> events.add("ran on B"));
                return null;
            }));
        }
        await().during(Duration.ofMillis(500))
                .atMost(Duration.ofSeconds(2))
                .until(() -> waiting.stream().noneMatch(Future::isDone));
        running.execute(() -> events.add("ran on A"));
        for (Future<?> one : waiting) {
            one.get(5, TimeUnit.SECONDS);
        }
        a.runBlocking(v1, () -> events.add("ran again on A"));
        assertThat(events).contains("ran on A").doesNotContain("ran on B", "ran again on A");
    }

    @Test
    void whoWaitsForAVersionTakesOverFromWhoFailed() throws Exception {
        LockRequest v1 = LockRequest.of("n").version("1").waitTimeout(LockRequest.UNLIMITED);
        LockHandle running = granted(a, v1);
        Future<?> waiting = threads.submit(() -> {
            b.runBlocking(v1, () -> events.add("ran on B"));
            return null;
        });
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> running.execute(() -> {
                    throw new IllegalArgumentException("failed");
                }));
        waiting.get(5, TimeUnit.SECONDS);
        assertThat(events).contains("ran on B");
        assertThat(a.find("n").orElseThrow().completed())
                .extracting(CompletedVersion::holder)
                .containsExactly("B");
    }

    @Test
    void whoWaitsForAVersionTakesOverFromWhoVanished() throws Exception {
        LockRequest v1 = LockRequest.of("n").version("1").waitTimeout(LockRequest.UNLIMITED);
        LockHandle vanishing = granted(a, v1);
        storeA.failRenewals = true;
        storeA.failReleases = true;
        storeA.close();
        b.runBlocking(v1, () -> events.add("ran on B"));
        assertThat(events).contains("ran on B");
        assertThat(vanishing.isHeld()).isFalse();
    }

    @Test
    void aVersionWhoseLockWasLostIsNotRemembered() {
        LockRequest request =
                LockRequest.of("n").version("1").maxHold(Duration.ofMillis(300)).onLost(OnLost.CONTINUE);
        LockHandle lock = granted(a, request);
        await().until(() -> !lock.isHeld());
        lock.close();
        await().atMost(Duration.ofSeconds(5))
                .until(() -> b.runOnce(LockRequest.of("n").version("1"), () -> {}));
    }

    @Test
    void payloadIsReadByEverybodyAndKeptAfterTheRelease() {
        LockHandle lock = granted(a, LockRequest.of("n").data("0 %"));
        assertThat(b.find("n").orElseThrow().data()).isEqualTo("0 %");
        lock.data("50 %");
        assertThat(b.find("n").orElseThrow().data()).isEqualTo("50 %");
        lock.close();
        assertThat(b.find("n").orElseThrow().data()).isEqualTo("50 %");
        granted(b, "n").close();
        assertThat(a.find("n").orElseThrow().data()).isNull();
    }

    @Test
    void aPayloadIsToldByFindAllAndReplacedOnlyByItsHolder() {
        LockHandle lock = granted(a, LockRequest.of("n").data("1"));
        lock.<Object, RuntimeException>execute(() -> {
            LockContext.current().data("2");
            assertThat(b.findAll()).extracting(LockInfo::data).contains("2");
            return null;
        });
        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> lock.data("late"));
        assertThat(b.findAll()).extracting(LockInfo::data).contains("2").doesNotContain("late");
        LockHandle next = granted(b, LockRequest.of("n").data("3"));
        assertThat(a.find("n").orElseThrow().data()).isEqualTo("3");
        next.data(null);
        assertThat(a.find("n").orElseThrow().data()).isNull();
        next.close();
    }

    @Test
    void aPayloadHasEightKilobytesAtMost() {
        String most = "\u00e9".repeat(LockRequest.MAX_DATA_BYTES / 2);
        LockHandle lock = granted(a, LockRequest.of("n").data(most));
        assertThat(b.find("n").orElseThrow().data()).isEqualTo(most);
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> lock.data(most + "x"))
                .withMessageContaining("8192")
                .withMessageContaining("8193");
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> LockRequest.of("n").data(most + "x"))
                .withMessageContaining("8192");
        assertThat(lock.isHeld()).isTrue();
        assertThat(b.find("n").orElseThrow().data()).isEqualTo(most);
        lock.close();
    }

    @Test
    void aForcedReleaseAtOnceLetsOthersInAtOnce() {
        LockHandle lock = granted(a, "n");
        assertThat(b.forceRelease("n", "the test says so", true)).isTrue();
        LockHandle next = granted(b, "n");
        assertThat(next.fence()).isGreaterThan(lock.fence());
        await().atMost(Duration.ofSeconds(4)).until(() -> !lock.isHeld());
        assertThat(lock.release()).isFalse();
        assertThat(next.isHeld()).isTrue();
    }

    @Test
    void aDatabaseThatFailsIsNeverReadAsHeldByAnother() {
        storeA.failClaims = true;
        for (int i = 0; i < 100; i++) {
            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> a.runOnce("n", () -> events.add("ran")));
        }
        storeA.failClaims = false;
        assertThat(a.runOnce("n", () -> {})).isTrue();
        await().untilAsserted(() -> assertThat(events)
                .containsExactlyInAnyOrder("A outage began", "A outage ended", "A released n SUCCEEDED"));
    }

    @Test
    void aStoppingRegistryTakesNothingNewAndWaitsForItsBodies() throws Exception {
        CountDownLatch finish = new CountDownLatch(1);
        CountDownLatch running = new CountDownLatch(1);
        Future<?> body = threads.submit(() -> a.runOnce("n", () -> {
            running.countDown();
            try {
                finish.await();
            } catch (InterruptedException e) {
                events.add("interrupted");
            }
        }));
        assertThat(running.await(10, TimeUnit.SECONDS)).isTrue();
        assertThat(a.stop(Duration.ofMillis(100))).isFalse();
        assertThat(denied(a, "other")).isEqualTo(DenialReason.STOPPING);
        assertThatExceptionOfType(LockNotAcquiredException.class).isThrownBy(() -> a.acquire(LockRequest.of("other")));
        await().during(Duration.ofMillis(2500))
                .atMost(Duration.ofSeconds(5))
                .until(() -> b.tryAcquire(LockRequest.of("n")).isEmpty());
        finish.countDown();
        body.get(5, TimeUnit.SECONDS);
        assertThat(a.stop(Duration.ofSeconds(5))).isTrue();
        granted(b, "n").close();
        a.start();
        granted(a, "n").close();
        assertThat(events).doesNotContain("interrupted");
    }

    @Test
    void closingInterruptsABodyAndReleasesItsLockOnlyWhenItHasEnded() throws Exception {
        CountDownLatch running = new CountDownLatch(2);
        CountDownLatch finish = new CountDownLatch(1);
        threads.submit(() -> a.runOnce("polite", () -> {
            running.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException e) {
                events.add("polite ended");
            }
        }));
        Future<?> deaf = threads.submit(() -> a.runOnce("deaf", () -> {
            running.countDown();
            while (finish.getCount() > 0) {
                Thread.onSpinWait();
            }
        }));
        assertThat(running.await(10, TimeUnit.SECONDS)).isTrue();
        long begin = System.nanoTime();
        a.close();
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
        assertThat(events).contains("polite ended");
        assertThat(storeA.closed).hasValue(1);
        granted(b, "polite").close();
        assertThat(denied(b, "deaf")).isIn(DenialReason.HELD, DenialReason.KEY_BUSY);
        finish.countDown();
        try {
            deaf.get(5, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError("the body's end must be quiet", e);
        }
        await().atMost(Duration.ofSeconds(5))
                .until(() -> b.tryAcquire(LockRequest.of("deaf")).isPresent());
    }

    @Test
    void closingWithManyLocksInUseSaysSoOnce() {
        // Other tests close their replicas meanwhile.
        String label = "closes in " + namespace;
        LockEngine closes = engine(newStore(StoreIdentity.random(namespace, label), LEASE), label);
        for (int i = 0; i < 200; i++) {
            granted(closes, "used-" + i);
        }
        try (CapturedLog log = CapturedLog.of("dev.pglock")) {
            closes.close();
            assertThat(log.messages())
                    .filteredOn(line -> line.contains(label) || line.contains("'used-"))
                    .singleElement()
                    .asString()
                    .startsWith("WARN Locks are still in use while '" + label + "' closes: ")
                    .contains("'used-", "(fence ", " and 195 more. They are kept");
        }
    }

    @Test
    void aThousandHeldLocksAreRenewedByOneStatementPerInterval() {
        List<LockHandle> locks = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            locks.add(granted(a, "n" + i));
        }
        int before = storeA.renewStatements.get();
        long begin = System.nanoTime();
        await().atMost(Duration.ofSeconds(10)).until(() -> storeA.renewStatements.get() >= before + 3);
        long intervals = (System.nanoTime() - begin) / HEARTBEAT.toNanos();
        assertThat(storeA.renewStatements.get() - before).isLessThanOrEqualTo((int) intervals + 2);
        assertThat(locks).allMatch(LockHandle::isHeld);
    }

    @Test
    void aRegistryThatIsClosedLeavesNoThread() throws Exception {
        ThreadGroup own = new ThreadGroup(namespace);
        Thread user = new Thread(own, () -> {
            LockEngine c = engine(newStore(StoreIdentity.random(namespace, "C"), LEASE), "C");
            granted(c, "n").close();
            c.close();
        });
        user.start();
        user.join();
        await().atMost(Duration.ofSeconds(10)).until(() -> {
            Thread[] left = new Thread[100];
            return Arrays.stream(left, 0, own.enumerate(left))
                    .noneMatch(thread -> thread.getName().startsWith("pglock-"));
        });
    }

    @Test
    void aListenerThatThrowsAnErrorKeepsNobodyFromTheLockOrFromItsInterrupt() throws Exception {
        LockEngine d = engine(newStore(StoreIdentity.random(namespace, "D"), LEASE), "D", new LockListener() {
            @Override
            public void acquired(LockHandle lock) {
                throw new NoClassDefFoundError("a listener");
            }

            @Override
            public void lost(LockHandle lock, LossReason reason) {
                throw new NoClassDefFoundError("a listener");
            }
        });
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        CountDownLatch told = new CountDownLatch(1);
        LockHandle lock = granted(d, LockRequest.of("n").maxHold(Duration.ofSeconds(1)));
        lock.onLost(told::countDown);
        threads.submit(() -> lock.<Object, RuntimeException>execute(() -> {
            try {
                interrupted.complete(new CountDownLatch(1).await(5, TimeUnit.SECONDS));
            } catch (InterruptedException e) {
                interrupted.complete(true);
            }
            return null;
        }));
        assertThat(interrupted.get(8, TimeUnit.SECONDS)).isTrue();
        assertThat(told.await(5, TimeUnit.SECONDS)).isTrue();
        await().atMost(Duration.ofSeconds(5))
                .until(() -> b.tryAcquire(LockRequest.of("n")).isPresent());
    }

    @Test
    void whoeverBlocksWhenHeIsToldKeepsNoHeartbeatAndNoOtherCallbackFromItsWork() throws Exception {
        CountDownLatch forEver = new CountDownLatch(1);
        CountDownLatch blocking = new CountDownLatch(11);
        Runnable blocks = () -> {
            blocking.countDown();
            try {
                boolean ignored = forEver.await(1, TimeUnit.MINUTES);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        LockEngine d = engine(newStore(StoreIdentity.random(namespace, "D"), LEASE), "D", new LockListener() {
            @Override
            public void lost(LockHandle lock, LossReason reason) {
                blocks.run();
            }
        });
        try {
            LockHandle held = granted(d, "held");
            LockHandle lost = granted(d, LockRequest.of("lost").maxHold(Duration.ofMillis(300)));
            for (int i = 0; i < 10; i++) {
                lost.onLost(blocks);
            }
            assertThat(blocking.await(5, TimeUnit.SECONDS)).isTrue();

            CountDownLatch told = new CountDownLatch(1);
            granted(d, LockRequest.of("lost too").maxHold(Duration.ofMillis(300)))
                    .onLost(told::countDown);
            assertThat(told.await(2, TimeUnit.SECONDS)).isTrue();
            await().during(LEASE).atMost(LEASE.plusSeconds(1)).until(held::isHeld);
        } finally {
            forEver.countDown();
        }
    }

    @Test
    void aLockIsNotReleasedUnderABodyThatRuns() {
        LockHandle lock = granted(a, "n");
        lock.<Object, RuntimeException>execute(() -> {
            assertThatIllegalStateException().isThrownBy(lock::release);
            lock.close();
            assertThat(lock.isHeld()).isTrue();
            assertThat(denied(b, "n")).isIn(DenialReason.HELD, DenialReason.KEY_BUSY);
            return null;
        });
        granted(b, "n").close();
    }

    @Test
    void aRegistryKnowsItsOwnHandles() {
        LockHandle lock = granted(a, "n");
        assertThat(a.owns(lock)).isTrue();
        assertThat(b.owns(lock)).isFalse();
    }

    @Test
    void whatTakesTooLongToBeTrueIsRefusedBeforeAnythingIsClaimed() {
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> LockRequest.of("n").maxHold(Duration.ofDays(200_000)));
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> LockRequest.of("n").minHold(LockRequest.UNLIMITED));
        LockHandle lock = granted(a, "n");
        assertThatExceptionOfType(NullPointerException.class).isThrownBy(() -> lock.onLost(null));
        assertThatExceptionOfType(IllegalArgumentException.class).isThrownBy(() -> lock.data("a\ud800b"));
        assertThat(lock.isHeld()).isTrue();
    }

    // ---- operators

    @Test
    void aPauseIsObeyedByAllReplicasUntilItIsResumed() {
        LockHandle lock = granted(a, "n");
        b.pause("n", "the database is being moved");
        lock.ensureHeld();
        lock.close();
        assertThat(denied(a, "n")).isEqualTo(DenialReason.PAUSED);
        assertThat(denied(b, "n")).isEqualTo(DenialReason.PAUSED);
        LockInfo info = a.find("n").orElseThrow();
        assertThat(info.state()).isEqualTo(LockState.PAUSED);
        assertThat(info.paused()).isEqualTo("the database is being moved");
        b.pause("never seen", "not yet");
        assertThat(denied(a, "never seen")).isEqualTo(DenialReason.PAUSED);

        assertThat(a.resume("n", "moved")).isTrue();
        assertThat(a.resume("n", "moved")).isFalse();
        assertThat(a.find("n").orElseThrow().paused()).isNull();
        granted(b, "n").close();
    }

    @Test
    void whoeverWaitsForAPausedLockGetsItWhenItIsResumed() throws Exception {
        a.pause("n", "for a moment");
        Future<LockHandle> waiting = threads.submit(() -> b.acquire(LockRequest.of("n")));
        await().until(() -> calls.contains("B denied n"));
        a.resume("n", "enough");
        waiting.get(3, TimeUnit.SECONDS).close();
    }

    @Test
    void aResignationInterruptsTheBodyAndTheLockIsGivenBackWhenThatHasEnded() throws Exception {
        CountDownLatch running = new CountDownLatch(1);
        AtomicBoolean interrupted = new AtomicBoolean();
        CountDownLatch told = new CountDownLatch(1);
        LockHandle lock = granted(a, "n");
        lock.onResign(told::countDown);
        Future<?> body = threads.submit(() -> lock.execute(() -> {
            running.countDown();
            try {
                Thread.sleep(30_000);
            } catch (InterruptedException e) {
                interrupted.set(lock.isHeld());
            }
            return null;
        }));
        assertThat(running.await(2, TimeUnit.SECONDS)).isTrue();
        assertThat(b.resign("n", "it shall run elsewhere")).isTrue();
        body.get(3, TimeUnit.SECONDS);
        assertThat(interrupted).as("interrupted while the lock was held").isTrue();
        assertThat(told.await(2, TimeUnit.SECONDS)).isTrue();
        await().untilAsserted(() -> assertThat(calls).contains("A resigning n: it shall run elsewhere"));
        assertThat(events).doesNotContain("A lost n TAKEN");

        LockHandle next = granted(b, "n");
        assertThat(b.resign("never seen", "none")).isFalse();
        assertThatIllegalArgumentException().isThrownBy(() -> b.resign("n", " "));
        await().untilAsserted(() ->
                assertThat(calls).filteredOn("B heartbeat"::equals).hasSizeGreaterThan(1));
        assertThat(calls).as("the next holder was not asked").noneMatch(event -> event.startsWith("B resigning"));
        next.close();
    }

    @Test
    void whoGoesOnAfterAResignationIsInterruptedAgainWhenTheLockIsLost() throws Exception {
        LockHandle lock = granted(a, "n");
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(1);
        Future<Boolean> body = threads.submit(() -> lock.<Boolean, InterruptedException>execute(() -> {
            running.countDown();
            try {
                Thread.sleep(30_000);
            } catch (InterruptedException e) {
                asked.countDown();
            }
            try {
                Thread.sleep(30_000);
                return false;
            } catch (InterruptedException e) {
                return !lock.isHeld();
            }
        }));
        assertThat(running.await(2, TimeUnit.SECONDS)).isTrue();
        assertThat(b.resign("n", "it shall run elsewhere")).isTrue();
        assertThat(asked.await(3, TimeUnit.SECONDS)).isTrue();

        storeA.failRenewals = true;

        assertThat(body.get(10, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void eachCallAndEachTenureIsToldOnce() throws Exception {
        LockHandle lock = granted(a, LockRequest.of("n 1").family("n {id}"));
        assertThat(lock.family()).isEqualTo("n {id}");
        LockAttempt denied = b.attempt(LockRequest.of("n 1"));
        assertThat(denied).isInstanceOf(LockAttempt.Denied.class);
        assertThatExceptionOfType(LockTimeoutException.class)
                .isThrownBy(() -> b.acquire(LockRequest.of("n 1").waitTimeout(Duration.ofMillis(120))));
        lock.close();
        lock.close();
        storeA.failClaims = true;
        assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> a.attempt(LockRequest.of("n 2")));
        assertThat(calls)
                .filteredOn(event -> event.contains("settled") || event.contains("ended n"))
                .containsExactly(
                        "A settled n 1 ACQUIRED",
                        "B settled n 1 HELD",
                        "B settled n 1 TIMEOUT waited",
                        "A ended n 1 SUCCEEDED RELEASED",
                        "A settled n 2 ERROR");
    }

    @Test
    void theStatusIsTakenFromMemory() {
        assertThat(a.status()).singleElement().satisfies(status -> {
            assertThat(status.held()).isZero();
            assertThat(status.heartbeatAge()).isNull();
            assertThat(status.isStale()).isFalse();
        });
        LockHandle lock = granted(a, "n");
        storeA.failRenewals = true;
        await().atMost(Duration.ofSeconds(3)).until(() -> a.status().get(0).isStale());
        assertThat(a.status().get(0).outage()).isNotNull();
        await().atMost(Duration.ofSeconds(3)).until(() -> a.status().get(0).lost() == 1);
        assertThat(a.status().get(0).held()).isZero();
        lock.close();
        await().untilAsserted(() -> assertThat(calls).contains("A ended n LOST LOST"));
    }
}
