package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.local.LocalSpace;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.stereotype.Component;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** More subscriptions at once than Reactor has threads for what blocks: none of them keeps the others from their end. */
class ManySubscriptionsTests {

    private static final int MANY = Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE + 5;
    private static final Duration SOON = Duration.ofSeconds(20);

    private final LocalSpace space = new LocalSpace();
    private Replica a;
    private Replica b;

    @BeforeEach
    void start() {
        a = Replica.start("A", space, Publishers.class);
        b = Replica.start("B", space);
    }

    @AfterEach
    void stop() {
        a.close();
        b.close();
    }

    @Component
    static class Publishers {

        private final AtomicInteger runs = new AtomicInteger();
        private final Sinks.One<Integer> end = Sinks.one();

        int runs() {
            return runs.get();
        }

        void end() {
            end.tryEmitValue(1).orThrow();
        }

        @Singleton("turn")
        public Mono<Integer> turn() {
            return Mono.fromCallable(runs::incrementAndGet).subscribeOn(Schedulers.boundedElastic());
        }

        @RunOnce(name = "once", version = "1", ifHeld = IfHeld.WAIT)
        public Mono<Integer> once() {
            return Mono.fromCallable(runs::incrementAndGet).subscribeOn(Schedulers.boundedElastic());
        }

        @Singleton("turn")
        public Mono<Integer> endless() {
            return Mono.never();
        }

        @RunOnce("ended-by-hand")
        public Mono<Integer> endedByHand() {
            return end.asMono();
        }
    }

    private boolean isFree(String name) {
        return b.registry()
                .find(name)
                .map(info -> info.state() == LockState.FREE)
                .orElse(true);
    }

    private static List<CompletableFuture<Integer>> subscribe(Mono<Integer> mono) {
        return IntStream.range(0, MANY).mapToObj(i -> mono.toFuture()).toList();
    }

    private static void awaitAll(List<CompletableFuture<Integer>> results) throws Exception {
        CompletableFuture.allOf(results.toArray(CompletableFuture[]::new)).get(SOON.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void everyOneOfASingletonGetsItsTurn() throws Exception {
        Publishers publishers = a.bean(Publishers.class);
        List<CompletableFuture<Integer>> results;
        try (LockHandle elsewhere =
                b.registry().tryAcquire(LockRequest.of("turn")).orElseThrow()) {
            results = subscribe(publishers.turn());
            assertThat(elsewhere.isHeld()).isTrue();
        }
        awaitAll(results);
        assertThat(publishers.runs()).isEqualTo(MANY);
    }

    @Test
    void allWaitUntilAVersionIsDoneAndOneDoesIt() throws Exception {
        Publishers publishers = a.bean(Publishers.class);
        List<CompletableFuture<Integer>> results;
        try (LockHandle elsewhere =
                b.registry().tryAcquire(LockRequest.of("once")).orElseThrow()) {
            results = subscribe(publishers.once());
            assertThat(elsewhere.isHeld()).isTrue();
        }
        awaitAll(results);
        assertThat(publishers.runs()).isEqualTo(1);
    }

    @Test
    void aCancellationReleasesWhateverWaits() throws Exception {
        Publishers publishers = a.bean(Publishers.class);
        Disposable holder = publishers.endless().subscribe();
        await().until(() -> !isFree("turn"));
        List<CompletableFuture<Integer>> results = subscribe(publishers.turn());
        holder.dispose();
        awaitAll(results);
        assertThat(publishers.runs()).isEqualTo(MANY);
    }

    @Test
    void aReleaseWaitsForNoThreadThatTheApplicationBlocks() throws Exception {
        Publishers publishers = a.bean(Publishers.class);
        CompletableFuture<Integer> result = publishers.endedByHand().toFuture();
        await().until(() -> !isFree("ended-by-hand"));
        CountDownLatch blocked = new CountDownLatch(1);
        Disposable.Composite blockers = Disposables.composite();
        Scheduler.Worker[] workers = IntStream.range(0, MANY)
                .mapToObj(i -> Schedulers.boundedElastic().createWorker())
                .toArray(Scheduler.Worker[]::new);
        try {
            for (Scheduler.Worker worker : workers) {
                blockers.add(worker);
                Disposable ignored = worker.schedule(() -> awaitUninterrupted(blocked));
            }
            publishers.end();
            await().atMost(SOON).until(() -> isFree("ended-by-hand"));
        } finally {
            blocked.countDown();
            blockers.dispose();
        }
        assertThat(result.get(SOON.toSeconds(), TimeUnit.SECONDS)).isEqualTo(1);
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
