package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockTimeoutException;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.local.LocalSpace;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.stereotype.Component;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;

/** Results that come later: the lock is held until the work has ended, however it ends. */
class LaterResultTests {

    private final LocalSpace space = new LocalSpace();
    private static Runs runs = new Runs();
    private Replica a;
    private Replica b;

    @BeforeEach
    void start() {
        runs = new Runs();
        a = Replica.start("A", space, Stages.class, Publishers.class);
        b = Replica.start("B", space);
    }

    @AfterEach
    void stop() {
        a.close();
        b.close();
    }

    private boolean isFree(String name) {
        return b.registry()
                .find(name)
                .map(info -> info.state() == LockState.FREE)
                .orElse(true);
    }

    private void awaitFree(String name) {
        await().atMost(Duration.ofSeconds(5)).until(() -> isFree(name));
    }

    private LockHandle heldElsewhere(String name) {
        return b.registry().tryAcquire(LockRequest.of(name)).orElseThrow();
    }

    // ---- futures

    @Component
    static class Stages {

        volatile CompletableFuture<String> body = new CompletableFuture<>();

        void body(CompletableFuture<String> next) {
            body = next;
        }

        @RunOnce("future")
        public CompletableFuture<String> future() {
            LockContext.requireHeld("future");
            return body;
        }

        @RunOnce(name = "stage", version = "1")
        public CompletionStage<String> stage() {
            return body;
        }

        @RunOnce(name = "told", ifHeld = IfHeld.FAIL)
        public CompletableFuture<String> told() {
            return body;
        }

        @Singleton(name = "short", maxHold = "300ms")
        public CompletableFuture<String> shortHold() {
            return body;
        }

        @RunOnce("any")
        public @Nullable Object any(@Nullable Object result) {
            return result;
        }

        @RunOnce("void")
        public @Nullable CompletableFuture<String> nothing() {
            return null;
        }
    }

    @Test
    void aFutureHoldsTheLockUntilItCompletes() throws Exception {
        Stages stages = a.bean(Stages.class);
        CompletableFuture<String> body = new CompletableFuture<>();
        stages.body(body);
        CompletableFuture<String> result = stages.future();
        assertThat(isFree("future")).isFalse();
        assertThat(stages.future()).as("skipped").isCompletedWithValue(null);
        body.complete("done");
        assertThat(result.get(5, TimeUnit.SECONDS)).isEqualTo("done");
        assertThat(isFree("future")).isTrue();
    }

    @Test
    void aFutureThatFailsOrIsCancelledReleasesToo() {
        Stages stages = a.bean(Stages.class);
        stages.body(CompletableFuture.failedFuture(new IllegalArgumentException("its own")));
        assertThatThrownBy(() -> stages.stage().toCompletableFuture().get(5, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(IllegalArgumentException.class);
        CompletableFuture<String> body = new CompletableFuture<>();
        stages.body(body);
        CompletableFuture<String> result = stages.stage().toCompletableFuture();
        assertThat(isFree("stage")).isFalse();
        assertThat(result.cancel(true)).isTrue();
        assertThat(body).isCancelled();
        assertThat(isFree("stage")).isTrue();
        stages.body(CompletableFuture.completedFuture("at last"));
        assertThat(stages.stage()).as("neither is remembered as a success").isCompletedWithValue("at last");
        assertThat(stages.stage()).as("version 1 is done").isCompletedWithValue(null);
    }

    @Test
    void whoAsksToBeToldOfADenialIsToldByTheCall() {
        try (LockHandle lock = heldElsewhere("told")) {
            assertThat(lock.isHeld()).isTrue();
            assertThatExceptionOfType(LockNotAcquiredException.class)
                    .isThrownBy(() -> a.bean(Stages.class).told());
        }
    }

    @Test
    void aFutureThatOutlastsMaxHoldIsCancelled() {
        CompletableFuture<String> body = new CompletableFuture<>();
        a.bean(Stages.class).body(body);
        assertThatThrownBy(() -> a.bean(Stages.class).shortHold().get(5, TimeUnit.SECONDS))
                .hasCauseInstanceOf(LockLostException.class);
        assertThat(body).isCancelled();
    }

    @Test
    void anUndeclaredFutureIsSeenAndWhatCannotBeKeptIsTold() throws Exception {
        Stages stages = a.bean(Stages.class);
        CompletableFuture<String> body = new CompletableFuture<>();
        Object result = stages.any(body);
        assertThat(result).isInstanceOf(CompletableFuture.class);
        assertThat(isFree("any")).isFalse();
        body.complete("done");
        assertThat(isFree("any")).isTrue();
        assertThat(stages.any("plain")).isEqualTo("plain");
        assertThat(stages.any(null)).isNull();
        FutureTask<String> task = new FutureTask<>(() -> "x");
        assertThatThrownBy(() -> stages.any(task)).hasMessageContaining("Declare the result as");
        assertThat(task.isCancelled()).isTrue();
        assertThatThrownBy(() -> stages.any(Mono.just(1))).hasMessageContaining("Declare the result as");
        assertThat(isFree("any")).isTrue();
        assertThat(stages.nothing()).as("what the method returned, as it is").isNull();
        assertThat(isFree("void")).isTrue();
    }

    @Component
    @Async
    static class Workers {

        @RunOnce("worker")
        public Future<String> future(CountDownLatch go) {
            FutureTask<String> task = new FutureTask<>(() -> {
                assertThat(go.await(5, TimeUnit.SECONDS)).isTrue();
                return "done";
            });
            new Thread(task).start();
            return task;
        }

        @RunOnce("stage-worker")
        public CompletableFuture<String> stage(CompletableFuture<String> body) {
            return body;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    static class AsyncSupport {

        @Bean
        ThreadPoolTaskExecutor taskExecutor() {
            ThreadPoolTaskExecutor executor = new ThreadPoolTaskExecutor();
            executor.setCorePoolSize(4);
            return executor;
        }
    }

    @Test
    void anAsyncMethodHoldsItsLockUntilItsFutureIsDoneWhateverKindItIs() throws Exception {
        try (Replica replica = Replica.start("C", space, AsyncSupport.class, Workers.class)) {
            CountDownLatch go = new CountDownLatch(1);
            CompletableFuture<String> body = new CompletableFuture<>();
            Future<String> plain = replica.bean(Workers.class).future(go);
            Future<String> stage = replica.bean(Workers.class).stage(body);
            await().until(() -> !isFree("worker") && !isFree("stage-worker"));
            assertThat(plain.isDone() || stage.isDone()).isFalse();
            go.countDown();
            body.complete("done");
            assertThat(plain.get(5, TimeUnit.SECONDS)).isEqualTo("done");
            assertThat(stage.get(5, TimeUnit.SECONDS)).isEqualTo("done");
            assertThat(isFree("worker") && isFree("stage-worker")).isTrue();
        }
    }

    // ---- Reactor

    @Component
    static class Publishers {

        final AtomicInteger called = new AtomicInteger();
        volatile Mono<String> body = Mono.just("done");

        void body(Mono<String> next) {
            body = next;
        }

        int called() {
            return called.get();
        }

        @RunOnce("mono")
        public Mono<String> mono() {
            called.incrementAndGet();
            LockContext.requireHeld("mono");
            return body;
        }

        @RunOnce(name = "once", version = "1")
        public Mono<String> once() {
            return body;
        }

        @Singleton("flux")
        public Flux<Integer> flux() {
            return Flux.range(1, 3).delayElements(Duration.ofMillis(20)).doOnSubscribe(s -> runs.run("flux", 20));
        }

        @Singleton(name = "impatient", waitTimeout = "100ms")
        public Flux<Integer> impatient() {
            return Flux.just(1);
        }

        @RunOnce(name = "told", ifHeld = IfHeld.FAIL)
        public Mono<String> told() {
            return body;
        }

        @Singleton("endless")
        public Flux<Integer> endless() {
            return Flux.just(1).concatWith(Flux.never());
        }

        @Singleton(name = "short", maxHold = "300ms")
        public Mono<String> shortHold() {
            return Mono.never();
        }

        @Singleton("outer")
        public Mono<String> outer(Mono<String> inner) {
            return inner;
        }

        @Singleton("outer")
        public Mono<String> sameLock() {
            return Mono.deferContextual(
                    context -> Mono.just(context.get(LockHandle.class).name()));
        }
    }

    @Test
    void nothingRunsAndNothingIsLockedBeforeASubscription() {
        Mono<String> mono = a.bean(Publishers.class).mono();
        assertThat(a.bean(Publishers.class).called()).isZero();
        assertThat(b.registry().find("mono")).isEmpty();
        assertThat(mono.block(Duration.ofSeconds(5))).isEqualTo("done");
        assertThat(isFree("mono")).as("released before the subscriber is told").isTrue();
        assertThat(mono.block(Duration.ofSeconds(5))).isEqualTo("done");
        assertThat(a.bean(Publishers.class).called()).isEqualTo(2);
    }

    @Test
    void aSubscriptionHoldsTheLockUntilItTerminates() throws Exception {
        Publishers publishers = a.bean(Publishers.class);
        Sinks.One<String> sink = Sinks.one();
        publishers.body(sink.asMono());
        CompletableFuture<String> result = publishers.mono().toFuture();
        await().until(() -> !isFree("mono"));
        assertThat(publishers.mono().blockOptional(Duration.ofSeconds(5)))
                .as("skipped")
                .isEmpty();
        sink.tryEmitValue("done").orThrow();
        assertThat(result.get(5, TimeUnit.SECONDS)).isEqualTo("done");
        assertThat(isFree("mono")).isTrue();
    }

    @Test
    void aFailureAndACancellationReleaseAndRememberNoVersion() {
        Publishers publishers = a.bean(Publishers.class);
        publishers.body(Mono.error(new IllegalArgumentException("its own")));
        assertThatThrownBy(() -> publishers.once().block(Duration.ofSeconds(5)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThat(isFree("once")).isTrue();
        publishers.body(Mono.never());
        Disposable subscription = publishers.once().subscribe();
        await().until(() -> !isFree("once"));
        subscription.dispose();
        awaitFree("once");
        publishers.body(Mono.just("at last"));
        assertThat(publishers.once().block(Duration.ofSeconds(5))).isEqualTo("at last");
        assertThat(publishers.once().blockOptional(Duration.ofSeconds(5))).isEmpty();
    }

    @Test
    void everySubscriptionOfASingletonTakesItsTurn() {
        Publishers publishers = a.bean(Publishers.class);
        List<Integer> numbers =
                Flux.range(0, 5).flatMap(i -> publishers.flux()).collectList().block(Duration.ofSeconds(20));
        assertThat(numbers).hasSize(15);
        assertThat(runs.count("flux")).isEqualTo(5);
        assertThat(runs.overlaps).isEmpty();
    }

    @Test
    void aDenialIsAnErrorOfThePublisherWhereOneIsAskedFor() {
        try (LockHandle one = heldElsewhere("impatient");
                LockHandle two = heldElsewhere("told")) {
            assertThat(one.isHeld() && two.isHeld()).isTrue();
            Publishers publishers = a.bean(Publishers.class);
            Flux<Integer> impatient = publishers.impatient();
            Mono<String> told = publishers.told();
            assertThatExceptionOfType(LockTimeoutException.class)
                    .isThrownBy(() -> impatient.blockLast(Duration.ofSeconds(5)));
            assertThatExceptionOfType(LockNotAcquiredException.class)
                    .isThrownBy(() -> told.block(Duration.ofSeconds(5)));
        }
    }

    @Test
    void aSubscriptionFromANonBlockingThreadBlocksItNowhere() {
        Publishers publishers = a.bean(Publishers.class);
        assertThat(Mono.defer(publishers::mono)
                        .subscribeOn(Schedulers.parallel())
                        .block(Duration.ofSeconds(5)))
                .isEqualTo("done");
    }

    @Test
    void aSubscriptionThatEndsEarlyReleases() {
        assertThat(a.bean(Publishers.class).endless().take(1).blockLast(Duration.ofSeconds(5)))
                .isEqualTo(1);
        awaitFree("endless");
    }

    @Test
    void aLossEndsTheSubscriptionWithItsReason() {
        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> a.bean(Publishers.class).shortHold().block(Duration.ofSeconds(5)));
        awaitFree("short");
    }

    @Test
    void theSameLockCoversASubscriptionInsideAndTheContextKnowsTheHandle() {
        Publishers publishers = a.bean(Publishers.class);
        assertThat(publishers.outer(publishers.sameLock()).block(Duration.ofSeconds(5)))
                .isEqualTo("outer");
    }

    @Test
    void aSubscriptionThatIsCancelledAtAnyMomentLeavesNoLockBehind() {
        Publishers publishers = a.bean(Publishers.class);
        publishers.body(Mono.delay(Duration.ofMillis(1)).thenReturn("done"));
        for (int i = 0; i < 300; i++) {
            Disposable subscription = Flux.from(i % 2 == 0 ? publishers.mono() : publishers.endless())
                    .subscribe();
            long spin = System.nanoTime() + ThreadLocalRandom.current().nextLong(400_000);
            while (System.nanoTime() < spin) {
                Thread.onSpinWait();
            }
            subscription.dispose();
        }
        awaitFree("mono");
        awaitFree("endless");
        assertThat(publishers.mono().block(Duration.ofSeconds(5))).isEqualTo("done");
    }

    // ---- ticks

    @Component
    static class ScheduledPublishers {

        @Scheduled(fixedDelay = 20)
        public Mono<Void> tick() {
            return Mono.fromRunnable(() -> runs.run("reactive", 20))
                    .subscribeOn(Schedulers.boundedElastic())
                    .then();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {

        @Bean
        TaskScheduler taskScheduler() {
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.setPoolSize(2);
            return scheduler;
        }
    }

    @Test
    void aScheduledPublisherRunsOnOneReplicaAtATimeAndASkippedTickIsNotItsLast() {
        LockHandle lock = heldElsewhere("ScheduledPublishers.tick");
        try (Replica one = Replica.start("C", space, Scheduling.class, ScheduledPublishers.class);
                Replica two = Replica.start("D", space, Scheduling.class, ScheduledPublishers.class)) {
            assertThat(one.registry().owns(lock) || two.registry().owns(lock)).isFalse();
            await().pollDelay(Duration.ofMillis(200)).until(() -> true);
            assertThat(runs.count("reactive")).isZero();
            lock.close();
            await().atMost(Duration.ofSeconds(10)).until(() -> runs.count("reactive") >= 20);
            assertThat(runs.overlaps).isEmpty();
        }
    }

    /** A registry whose database is away for as long as the test says. */
    @Configuration(proxyBeanMethods = false)
    static class Outage {

        static final AtomicBoolean AWAY = new AtomicBoolean();
        static final List<String> ASKED = new CopyOnWriteArrayList<>();

        @Bean
        static org.springframework.beans.factory.config.BeanPostProcessor failing() {
            return new org.springframework.beans.factory.config.BeanPostProcessor() {
                @Override
                public Object postProcessBeforeInitialization(Object bean, String name) {
                    return bean instanceof LockRegistry registry ? failing(registry) : bean;
                }
            };
        }

        private static Object failing(LockRegistry registry) {
            return Proxy.newProxyInstance(
                    Outage.class.getClassLoader(), new Class<?>[] {LockRegistry.class}, (proxy, method, arguments) -> {
                        if (method.getName().equals("attempt") && AWAY.get()) {
                            ASKED.add(method.getName());
                            throw new LockStorageException("The database is away", null);
                        }
                        return method.invoke(registry, arguments);
                    });
        }
    }

    @Test
    void aDatabaseFailureSkipsThatTickOfAPublisherAndNoOther() {
        Outage.AWAY.set(true);
        try (Replica one = Replica.start(
                "C", space, Outage.class, Scheduling.class, ScheduledPublishers.class, Publishers.class)) {
            await().atMost(Duration.ofSeconds(5)).until(() -> Outage.ASKED.size() >= 3);
            assertThat(runs.count("reactive")).isZero();
            assertThatExceptionOfType(LockStorageException.class)
                    .as("outside of a tick it is told")
                    .isThrownBy(() -> one.bean(Publishers.class).mono().block(Duration.ofSeconds(5)));
            Outage.AWAY.set(false);
            await().atMost(Duration.ofSeconds(5)).until(() -> runs.count("reactive") >= 3);
        } finally {
            Outage.AWAY.set(false);
        }
    }
}
