package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockTimeoutException;
import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.engine.LockEngine;
import dev.pglock.local.LocalSpace;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.AliasFor;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.SchedulingConfigurer;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;
import org.springframework.stereotype.Component;

/** What a call of a locked method does; two contexts are two replicas. */
class InterceptionTests {

    private final LocalSpace space = new LocalSpace();
    private static Runs runs = new Runs();
    private @Nullable Replica a;
    private @Nullable Replica b;

    InterceptionTests() {
        runs = new Runs();
    }

    @AfterEach
    void stop() {
        if (a != null) {
            a.close();
        }
        if (b != null) {
            b.close();
        }
    }

    private void start(Class<?>... configuration) {
        a = Replica.start("A", space, configuration);
        b = Replica.start("B", space, configuration);
    }

    private LockHandle heldElsewhere(String name) {
        return b.registry().tryAcquire(LockRequest.of(name)).orElseThrow();
    }

    private static void assertRunsOnOneReplicaAtATime(String job, int atLeast) {
        await().atMost(Duration.ofSeconds(15)).until(() -> runs.count(job) >= atLeast);
        assertThat(runs.overlaps).doesNotContain(job);
    }

    // ---- scheduled methods

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {

        @Bean
        TaskScheduler taskScheduler() {
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.setPoolSize(4);
            return scheduler;
        }
    }

    @Component
    static class Plain {

        @Autowired
        LockRegistry registry;

        @Scheduled(fixedDelay = 20)
        void tick() {
            assertThat(registry).isNotNull();
            LockContext.requireHeld("Plain.tick");
            runs.run("plain", 30);
        }
    }

    @Test
    void aScheduledMethodRunsOnOneReplicaAtATime() {
        start(Scheduling.class, Plain.class);
        assertRunsOnOneReplicaAtATime("plain", 20);
    }

    @Component
    static class Repeated {

        @Scheduled(fixedDelay = 20)
        @Scheduled(fixedDelay = 35)
        public void tick() {
            LockContext.requireHeld("Repeated.tick");
            runs.run("repeated", 20);
        }
    }

    @Test
    void repeatedTriggersOfOneMethodShareOneLock() {
        start(Scheduling.class, Repeated.class);
        assertRunsOnOneReplicaAtATime("repeated", 20);
    }

    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Scheduled(fixedDelay = 20)
    @RunOnce
    @interface Tick {

        @AliasFor(annotation = RunOnce.class, attribute = "name")
        String name();
    }

    @Component
    static class Composed {

        @Tick(name = "composed-name")
        public void tick() {
            LockContext.requireHeld("composed-name");
            runs.run("composed", 20);
        }
    }

    @Test
    void composedAnnotationsAreFoundWithTheirAttributes() {
        start(Scheduling.class, Composed.class);
        assertRunsOnOneReplicaAtATime("composed", 10);
        assertThat(a.registry().find("composed-name")).isPresent();
    }

    @Component
    static class Cache {

        @Scheduled(fixedDelay = 20)
        @EveryReplica
        public void refresh() {
            assertThat(LockContext.find("Cache.refresh")).isNull();
            runs.run("refresh", 0);
        }

        @Scheduled(fixedDelay = 20)
        @EveryReplica
        @Singleton(name = "one-by-one")
        public void oneByOne() {
            LockContext.requireHeld("one-by-one");
            runs.run("one-by-one", 20);
        }
    }

    @Test
    void everyReplicaOptsOutAndWithSingletonTakesTurns() {
        start(Scheduling.class, Cache.class);
        assertRunsOnOneReplicaAtATime("one-by-one", 10);
        assertThat(runs.count("refresh")).isPositive();
    }

    @Component
    static class Asynchronous {

        @Async
        @Scheduled(fixedDelay = 20)
        public void tick() {
            LockContext.requireHeld("Asynchronous.tick");
            assertThat(Thread.currentThread().getName()).startsWith("worker");
            runs.run("async", 100);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    static class AsyncSupport {

        @Bean
        ThreadPoolTaskExecutor taskExecutor() {
            ThreadPoolTaskExecutor executor = new ThreadPoolTaskExecutor();
            executor.setCorePoolSize(4);
            executor.setThreadNamePrefix("worker");
            return executor;
        }
    }

    @Test
    void anAsyncTickIsLockedOnItsWorkerForAsLongAsItRuns() {
        start(Scheduling.class, AsyncSupport.class, Asynchronous.class);
        assertRunsOnOneReplicaAtATime("async", 5);
    }

    @Component
    static class Programmed {

        @Scheduled(cron = "-")
        public void tick() {
            LockContext.requireHeld("Programmed.tick");
            runs.run("programmed", 20);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import(Programmed.class)
    static class ProgrammedScheduling implements SchedulingConfigurer {

        @Autowired
        Programmed programmed;

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            registrar.addFixedDelayTask(() -> programmed.tick(), Duration.ofMillis(20));
        }
    }

    @Test
    void tasksFromAConfigurerAreTicksAsWell() {
        start(Scheduling.class, ProgrammedScheduling.class);
        assertRunsOnOneReplicaAtATime("programmed", 10);
    }

    @Test
    void aDirectCallOfAScheduledMethodRunsOrSaysWhoHoldsIt() {
        start(Programmed.class);
        a.bean(Programmed.class).tick();
        assertThat(runs.count("programmed")).isEqualTo(1);
        try (LockHandle lock = heldElsewhere("Programmed.tick")) {
            assertThat(lock.isHeld()).isTrue();
            assertThatExceptionOfType(LockNotAcquiredException.class)
                    .isThrownBy(() -> a.bean(Programmed.class).tick())
                    .withMessageContaining("'B'");
        }
        assertThat(runs.count("programmed")).isEqualTo(1);
    }

    @Component
    static class Outer {

        @Autowired
        Programmed inner;

        private final CompletableFuture<String> answer = new CompletableFuture<>();

        CompletableFuture<String> answer() {
            return answer;
        }

        @Scheduled(fixedDelay = 100_000)
        public void outer() {
            try {
                inner.tick();
                answer.complete("ran");
            } catch (LockNotAcquiredException e) {
                answer.complete("told");
            }
        }
    }

    @Test
    void aDirectCallFromInsideATickIsNoTick() throws Exception {
        b = Replica.start("B", space);
        try (LockHandle lock = heldElsewhere("Programmed.tick")) {
            assertThat(lock.isHeld()).isTrue();
            a = Replica.start("A", space, Scheduling.class, Programmed.class, Outer.class);
            assertThat(a.bean(Outer.class).answer().get(10, TimeUnit.SECONDS)).isEqualTo("told");
        }
    }

    @Test
    void scheduledMethodsCanBeLeftAloneByConfiguration() {
        LockedMethodSettings annotatedOnly = new LockedMethodSettings(
                ScheduledMode.ANNOTATED,
                List.of(),
                List.of(),
                true,
                Map.of(),
                Verification.FAIL,
                Replica.DEFAULTS.strategy(),
                Replica.DEFAULTS.leaseDuration(),
                null,
                null);
        a = Replica.start("A", space, annotatedOnly, Map.of(), Programmed.class, Composed.class);
        assertThat(AopUtils.isAopProxy(a.bean(Programmed.class))).isFalse();
        assertThat(AopUtils.isAopProxy(a.bean(Composed.class))).isTrue();
        LockedMethodSettings named = new LockedMethodSettings(
                ScheduledMode.ALL,
                List.of(),
                List.of("Programmed.tick"),
                true,
                Map.of(),
                Verification.FAIL,
                Replica.DEFAULTS.strategy(),
                Replica.DEFAULTS.leaseDuration(),
                null,
                null);
        b = Replica.start("B", space, named, Map.of(), Programmed.class);
        assertThat(AopUtils.isAopProxy(b.bean(Programmed.class))).isFalse();
    }

    // ---- @RunOnce

    @Component
    static class Jobs {

        @RunOnce("void")
        public void nothing() {
            runs.run("void", 0);
        }

        @RunOnce("optional")
        public Optional<String> optional() {
            return Optional.of("ran");
        }

        @RunOnce("object")
        public @Nullable String object() {
            return "ran";
        }

        @RunOnce(name = "fail", ifHeld = IfHeld.FAIL)
        public int fail() {
            return 7;
        }

        @RunOnce(name = "conditional", condition = "#p0 > 1")
        public @Nullable String conditional(int number) {
            return "ran";
        }

        @RunOnce("named-#{#id}-#{#p0}")
        public @Nullable String named(@Nullable Long id) {
            return LockContext.current().name();
        }

        @RunOnce("${the.name}")
        public @Nullable String placeholder() {
            return LockContext.current().name();
        }

        @RunOnce(name = "quick", minHold = "${the.hold}")
        public @Nullable String quick() {
            return "ran";
        }

        @RunOnce(name = "version", version = "1")
        public @Nullable String version(boolean fails) {
            if (fails) {
                throw new IllegalStateException("failed");
            }
            return "ran";
        }

        @RunOnce(name = "migration", version = "1", ifHeld = IfHeld.WAIT)
        public void migration(CountDownLatch finish) throws InterruptedException {
            assertThat(finish.await(10, TimeUnit.SECONDS)).isTrue();
            runs.run("migration", 0);
        }
    }

    private void startJobs() {
        Map<String, Object> properties = Map.of("the.name", "from-#configuration", "the.hold", "30s");
        a = Replica.start("A", space, Replica.DEFAULTS, properties, Jobs.class);
        b = Replica.start("B", space, Replica.DEFAULTS, properties, Jobs.class);
    }

    @Test
    void aSkippedCallReturnsNothingAndAnUnskippedOneItsResult() {
        startJobs();
        Jobs jobs = a.bean(Jobs.class);
        assertThat(jobs.optional()).contains("ran");
        assertThat(jobs.object()).isEqualTo("ran");
        LockHandle one = heldElsewhere("optional");
        LockHandle two = heldElsewhere("object");
        LockHandle three = heldElsewhere("void");
        assertThat(jobs.optional()).isEmpty();
        assertThat(jobs.object()).isNull();
        jobs.nothing();
        assertThat(runs.count("void")).isZero();
        List.of(one, two, three).forEach(LockHandle::close);
        jobs.nothing();
        assertThat(runs.count("void")).isEqualTo(1);
    }

    @Test
    void ifHeldFailTellsTheCaller() {
        startJobs();
        Jobs jobs = a.bean(Jobs.class);
        assertThat(jobs.fail()).isEqualTo(7);
        try (LockHandle lock = heldElsewhere("fail")) {
            assertThat(lock.isHeld()).isTrue();
            assertThatExceptionOfType(LockNotAcquiredException.class)
                    .isThrownBy(jobs::fail)
                    .withMessageContaining("held by 'B'");
        }
    }

    @Test
    void aFalseConditionIsDecidedBeforeTheLock() {
        startJobs();
        Jobs jobs = a.bean(Jobs.class);
        assertThat(jobs.conditional(1)).isNull();
        assertThat(a.registry().find("conditional")).isEmpty();
        assertThat(jobs.conditional(2)).isEqualTo("ran");
    }

    @Test
    void namesAreEvaluatedOverTheArgumentsAndNeverTwice() {
        startJobs();
        Jobs jobs = a.bean(Jobs.class);
        assertThat(jobs.named(5L)).isEqualTo("named-5-5");
        assertThat(jobs.placeholder()).isEqualTo("from-#configuration");
        assertThatThrownBy(() -> jobs.named(null)).hasMessageContaining("is null");
        assertThat(a.registry().findAll()).noneMatch(info -> info.name().contains("{"));
    }

    @Test
    void aQuickJobStaysClosedForItsMinimumHold() {
        startJobs();
        assertThat(a.bean(Jobs.class).quick()).isEqualTo("ran");
        assertThat(b.bean(Jobs.class).quick()).isNull();
        assertThat(a.registry().find("quick").orElseThrow().state()).isEqualTo(LockState.HOLD);
    }

    @Test
    void aVersionSucceedsOnceForEver() {
        startJobs();
        assertThatThrownBy(() -> a.bean(Jobs.class).version(true)).isInstanceOf(IllegalStateException.class);
        assertThat(b.bean(Jobs.class).version(false)).isEqualTo("ran");
        assertThat(a.bean(Jobs.class).version(false)).isNull();
    }

    @Test
    void everybodyWaitsForAMigrationThatOneReplicaRuns() throws Exception {
        startJobs();
        CountDownLatch finish = new CountDownLatch(1);
        CompletableFuture<Void> first =
                CompletableFuture.runAsync(() -> migrate(a, finish), task -> new Thread(task).start());
        await().until(() -> a.registry().find("migration").isPresent());
        CompletableFuture<Void> second =
                CompletableFuture.runAsync(() -> migrate(b, finish), task -> new Thread(task).start());
        finish.countDown();
        CompletableFuture.allOf(first, second).get(10, TimeUnit.SECONDS);
        assertThat(runs.count("migration")).isEqualTo(1);
    }

    private static void migrate(Replica replica, CountDownLatch finish) {
        try {
            replica.bean(Jobs.class).migration(finish);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    // ---- @Singleton, nesting, self-invocation

    @Component
    static class Nested {

        @Autowired
        NestedInner inner;

        @RunOnce("outer")
        public List<String> outer() {
            String other = inner.inner();
            String same = inner.sameLock();
            LockContext.requireHeld("outer");
            return List.of(String.valueOf(other), String.valueOf(same));
        }

        public void pastTheProxy() {
            locked();
        }

        @RunOnce("locked")
        public void locked() {
            LockContext.requireHeld("locked");
        }
    }

    @Component
    static class NestedInner {

        @RunOnce("inner")
        public @Nullable String inner() {
            return LockContext.current().name();
        }

        @RunOnce("outer")
        public @Nullable String sameLock() {
            return LockContext.current().name();
        }

        @RunOnce(name = "outer", version = "1", ifHeld = IfHeld.WAIT)
        public void sameLockWithVersion() {}
    }

    @Test
    void locksNestAndTheSameLockCoversTheInnerCall() {
        start(Nested.class, NestedInner.class);
        assertThat(a.bean(Nested.class).outer()).containsExactly("inner", "outer");
        assertThat(b.registry().findAll()).allMatch(info -> info.state() == LockState.FREE);
        assertThat(LockContext.find("outer")).isNull();
    }

    @Test
    void aVersionUnderItsOwnLockIsRefusedAtOnce() {
        start(Nested.class, NestedInner.class);
        LockHandle outer = a.registry().tryAcquire(LockRequest.of("outer")).orElseThrow();
        outer.<Object, RuntimeException>execute(() -> {
            assertThatThrownBy(() -> a.bean(NestedInner.class).sameLockWithVersion())
                    .hasMessageContaining("wait for itself");
            return null;
        });
    }

    @Test
    void theSameNameOfAnotherRegistryIsAnotherLock() {
        start(Nested.class, NestedInner.class);
        Replica stranger = Replica.start("C", new LocalSpace());
        try (LockHandle held = heldElsewhere("inner")) {
            assertThat(held.isHeld()).isTrue();
            LockHandle foreign =
                    stranger.registry().tryAcquire(LockRequest.of("inner")).orElseThrow();
            foreign.<Object, RuntimeException>execute(() -> {
                assertThat(a.bean(NestedInner.class).inner()).isNull();
                return null;
            });
        } finally {
            stranger.close();
        }
    }

    @Test
    void aDirectCallWhileTheReplicaStopsIsNotSkippedInSilence() {
        startJobs();
        boolean ignored = ((LockEngine) a.registry()).stop(Duration.ZERO);
        assertThatExceptionOfType(LockNotAcquiredException.class)
                .isThrownBy(() -> a.bean(Jobs.class).object())
                .satisfies(e -> assertThat(e.reason()).isEqualTo(DenialReason.STOPPING));
    }

    @Test
    void aCallPastTheProxyIsFoundByRequireHeld() {
        start(Nested.class, NestedInner.class);
        a.bean(Nested.class).locked();
        assertThatExceptionOfType(LockNotAcquiredException.class)
                .isThrownBy(() -> a.bean(Nested.class).pastTheProxy())
                .withMessageContaining("this.method()");
    }

    @Component
    static class Campaigns {

        @Singleton("campaign-#{#id}")
        public long recompute(long id) {
            runs.run("campaign", 20);
            return id;
        }

        @Singleton(name = "impatient", waitTimeout = "200ms")
        public void impatient() {}
    }

    @Test
    void everyCallOfASingletonRunsAndNoTwoTogether() throws Exception {
        start(Campaigns.class);
        CompletableFuture<?>[] calls = new CompletableFuture<?>[12];
        for (int i = 0; i < calls.length; i++) {
            Replica replica = i % 2 == 0 ? a : b;
            calls[i] = CompletableFuture.runAsync(
                    () -> replica.bean(Campaigns.class).recompute(7), command -> new Thread(command).start());
        }
        CompletableFuture.allOf(calls).get(30, TimeUnit.SECONDS);
        assertThat(runs.count("campaign")).isEqualTo(12);
        assertThat(runs.overlaps).isEmpty();
    }

    @Test
    void aSingletonThatWaitsInVainFails() {
        start(Campaigns.class);
        LockHandle lock = heldElsewhere("impatient");
        assertThatExceptionOfType(LockTimeoutException.class)
                .isThrownBy(() -> a.bean(Campaigns.class).impatient())
                .satisfies(e -> assertThat(e.reason()).isEqualTo(DenialReason.HELD));
        lock.close();
        a.bean(Campaigns.class).impatient();
    }

    @Test
    void configurationCanPauseALockOrOpenItToEveryReplica() {
        LockedMethodSettings settings = new LockedMethodSettings(
                ScheduledMode.ALL,
                List.of(),
                List.of(),
                true,
                Map.of("object", LockMode.PAUSED, "optional", LockMode.EVERY_REPLICA, "fail", LockMode.PAUSED),
                Verification.FAIL,
                Replica.DEFAULTS.strategy(),
                Replica.DEFAULTS.leaseDuration(),
                null,
                null);
        a = Replica.start("A", space, settings, Map.of("the.name", "n", "the.hold", "1s"), Jobs.class);
        b = Replica.start("B", space);
        LockHandle lock = heldElsewhere("optional");
        assertThat(a.bean(Jobs.class).optional()).contains("ran");
        assertThat(a.bean(Jobs.class).object()).isNull();
        assertThatThrownBy(() -> a.bean(Jobs.class).fail()).hasMessageContaining("mode: paused");
        lock.close();
    }
}
