package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.LockTimeoutException;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Three replicas whose waiters are many, are interrupted, have hardly any time, or lose the session that listens. */
@Tag("long")
@Tag("thorough")
class WaitingUnderAttackTests {

    /** Odd on purpose: it reaches SQL, application names and log lines. */
    private static final String NAMESPACE = "it's \"odd\" %_\\ ü:" + "x".repeat(80);

    private static final Duration LEASE = Duration.ofSeconds(10);

    /** A poll, and room. */
    private static final Duration POLLED = Duration.ofMillis(2500);

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<LockEngine> engines = List.of(engine("A"), engine("B"), engine("C"));

    @AfterEach
    void close() throws Exception {
        threads.shutdownNow();
        engines.forEach(LockEngine::close);
        stores.close();
    }

    private LockEngine engine(String label) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        String url = stores.database().url();
        return LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.LEASE)
                        .withLease(LEASE, null))
                .store(stores.lease(identity, url, LEASE, 2))
                .store(stores.store(identity, url, LEASE, 100))
                .wakeUps(new NotifiedWakeUps(stores.sessions(StoreIdentity.random("listens", label), url, LEASE)))
                .build();
    }

    private LockRequest request(LockStrategy strategy) {
        return LockRequest.of("n").strategy(strategy).waitTimeout(Duration.ofSeconds(60));
    }

    private void assertNothingIsLeft(LockStrategy strategy) throws Exception {
        await().atMost(Duration.ofSeconds(10)).until(() -> stores.keysHeld() == 0);
        await().atMost(Duration.ofSeconds(10))
                .until(() -> stores.database()
                                .number("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE"
                                        + " 'pglock:listens:%' AND datname = current_database()")
                        == 0);
        engines.get(0).acquire(request(strategy)).close();
        for (LockEngine engine : engines) {
            assertThat(engine.stop(Duration.ofSeconds(1)))
                    .as("nobody holds or waits")
                    .isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void everyOneOfTwoHundredWaitersGetsItsTurn(LockStrategy strategy) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        AtomicLong fence = new AtomicLong();
        List<Future<?>> waiters = new ArrayList<>();
        LockHandle first = engines.get(0).tryAcquire(request(strategy)).orElseThrow();
        for (int i = 0; i < 200; i++) {
            LockEngine engine = engines.get(i % 3);
            waiters.add(threads.submit(() -> {
                try (LockHandle lock = engine.acquire(request(strategy))) {
                    most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                    assertThat(fence.getAndSet(lock.fence())).isLessThan(lock.fence());
                    inside.decrementAndGet();
                }
                return null;
            }));
        }
        first.close();
        for (Future<?> waiter : waiters) {
            waiter.get(60, TimeUnit.SECONDS);
        }
        assertThat(most).hasValue(1);
        assertNothingIsLeft(strategy);
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aStormOfInterruptsLeavesNothingBehind(LockStrategy strategy) throws Exception {
        AtomicInteger granted = new AtomicInteger();
        AtomicInteger interrupted = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        List<Thread> waiters = new ArrayList<>();
        for (int i = 0; i < 15; i++) {
            LockEngine engine = engines.get(i % 3);
            Thread thread = new Thread(() -> {
                while (!over.get()) {
                    try (LockHandle lock = engine.acquire(request(strategy))) {
                        granted.incrementAndGet();
                        Thread.sleep(ThreadLocalRandom.current().nextInt(5));
                    } catch (InterruptedException e) {
                        interrupted.incrementAndGet();
                    }
                }
            });
            waiters.add(thread);
            thread.start();
        }
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(4);
        while (System.nanoTime() < until) {
            waiters.get(ThreadLocalRandom.current().nextInt(waiters.size())).interrupt();
            Thread.sleep(2);
        }
        over.set(true);
        for (Thread waiter : waiters) {
            waiter.join(10_000);
            assertThat(waiter.isAlive()).isFalse();
        }
        assertThat(granted).hasPositiveValue();
        assertThat(interrupted).hasPositiveValue();
        assertNothingIsLeft(strategy);
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void whoseListenersAreKilledOverAndOverWaitsForAPollAtMost(LockStrategy strategy) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        List<Future<Duration>> longest = new ArrayList<>();
        for (LockEngine engine : engines) {
            longest.add(threads.submit(() -> {
                Duration most = Duration.ZERO;
                while (!over.get()) {
                    long begun = System.nanoTime();
                    try (LockHandle lock = engine.acquire(request(strategy))) {
                        Duration waited = Duration.ofNanos(System.nanoTime() - begun);
                        most = waited.compareTo(most) > 0 ? waited : most;
                        Thread.sleep(5);
                    }
                }
                return most;
            }));
        }
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(4);
        while (System.nanoTime() < until) {
            stores.database().terminate("pglock:listens:%");
            Thread.sleep(20);
        }
        over.set(true);
        for (Future<Duration> one : longest) {
            // Behind two others, more than once if they are lucky
            assertThat(one.get(20, TimeUnit.SECONDS)).isLessThan(POLLED.multipliedBy(3));
        }
        assertNothingIsLeft(strategy);
    }

    @Test
    void whoHasHardlyAnyTimeIsSentAwayInTimeOrHasTheLock() throws Exception {
        LockEngine waits = engines.get(1);
        for (Duration timeout :
                List.of(Duration.ZERO, Duration.ofNanos(1), Duration.ofMillis(1), Duration.ofMillis(60))) {
            for (LockStrategy strategy : List.of(LockStrategy.LEASE, LockStrategy.ADVISORY)) {
                LockRequest request = request(strategy).waitTimeout(timeout);
                waits.acquire(request).close();
                try (LockHandle lock = engines.get(0).tryAcquire(request).orElseThrow()) {
                    long begun = System.nanoTime();
                    assertThatExceptionOfType(LockTimeoutException.class).isThrownBy(() -> waits.acquire(request));
                    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
                }
            }
        }
        assertNothingIsLeft(LockStrategy.LEASE);
    }

    @Test
    void whoWaitsWhenItsRegistryStopsIsSentAwayAtOnce() throws Exception {
        LockHandle lock = engines.get(0).tryAcquire(request(LockStrategy.LEASE)).orElseThrow();
        List<Future<String>> waiters = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            waiters.add(threads.submit(() -> {
                try (LockHandle never = engines.get(1).acquire(request(LockStrategy.LEASE))) {
                    return "granted";
                } catch (LockNotAcquiredException e) {
                    return e.reason().name();
                }
            }));
        }
        await().until(() -> stores.keysHeld() > 0);
        long begun = System.nanoTime();
        assertThat(engines.get(1).stop(Duration.ofSeconds(5))).isTrue();
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
        for (Future<String> waiter : waiters) {
            assertThat(waiter.get(1, TimeUnit.SECONDS)).isEqualTo("STOPPING");
        }
        lock.close();
        engines.get(1).start();
        engines.get(1).acquire(request(LockStrategy.LEASE)).close();
        assertNothingIsLeft(LockStrategy.LEASE);
    }
}
