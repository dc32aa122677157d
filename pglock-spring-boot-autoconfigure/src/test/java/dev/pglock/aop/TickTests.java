package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockRequest;
import dev.pglock.Tick;
import dev.pglock.annotation.RunOnce;
import dev.pglock.local.LocalSpace;
import dev.pglock.store.ServerClock;
import dev.pglock.store.TickGuard;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.reflect.Proxy;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.predicate.RuntimeHintsPredicates;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.core.task.TaskExecutor;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.SchedulingConfigurer;
import org.springframework.scheduling.concurrent.SimpleAsyncTaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.scheduling.config.CronTask;
import org.springframework.scheduling.config.FixedDelayTask;
import org.springframework.scheduling.config.FixedRateTask;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;
import org.springframework.scheduling.config.Task;
import org.springframework.scheduling.support.CronTrigger;
import org.springframework.scheduling.support.PeriodicTrigger;
import org.springframework.scheduling.support.SimpleTriggerContext;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What a firing knows of its tick, and what becomes of it. */
@ExtendWith(OutputCaptureExtension.class)
class TickTests {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");
    private static final AtomicInteger runs = new AtomicInteger();
    private static final List<String> ran = new CopyOnWriteArrayList<>();

    private final LocalSpace space = new LocalSpace();
    private final List<AutoCloseable> open = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable closeable : open) {
            closeable.close();
        }
        runs.set(0);
        ran.clear();
    }

    private Replica start(String label, LockedMethodSettings settings, Class<?> jobs) {
        Replica replica = Replica.start(label, space, settings, Map.of(), jobs);
        open.add(replica);
        return replica;
    }

    // ---- names of triggers

    @Test
    void triggersAreToldApartByWhatTheyFire() {
        Clock utc = Clock.systemUTC();
        List<Trigger> different = List.of(
                new CronTrigger("0 0 9 * * *", BERLIN),
                new CronTrigger("0 0 9 * * *", ZoneId.of("America/New_York")),
                new CronTrigger("0 0 9 * * *", ZoneId.of("Africa/Tunis")),
                new CronTrigger("0 0 10 * * *", BERLIN),
                new CronTrigger("@hourly"),
                rate(300),
                rate(301));

        assertThat(different)
                .extracting(trigger -> TriggerNames.of(trigger, utc))
                .doesNotHaveDuplicates();
        assertThat(TriggerNames.of(new CronTrigger("0 0 9 * * *", BERLIN), utc))
                .isEqualTo(TriggerNames.of(new CronTrigger("0 0 9 * * *", BERLIN), utc));
    }

    @Test
    void equalTriggersOfOneTaskAreNumberedAndACancelledOneGivesItsNumberAway() {
        TriggerNames names = new TriggerNames();
        TaskMethod task = TaskMethod.saying("Job.tick");
        List<String> given = new ArrayList<>();
        Future<?> first = names.give(task, "rate", name -> scheduled(given, name));
        Future<?> second = names.give(task, "rate", name -> scheduled(given, name));
        names.give(TaskMethod.saying("Other.tick"), "rate", name -> scheduled(given, name));
        first.cancel(false);
        names.give(task, "rate", name -> scheduled(given, name));

        assertThat(given).containsExactly("rate", "rate #2", "rate", "rate");
        assertThat(second).isNotDone();
    }

    private static Future<?> scheduled(List<String> given, String name) {
        given.add(name);
        return new CompletableFuture<>();
    }

    private static PeriodicTrigger rate(long millis) {
        PeriodicTrigger rate = new PeriodicTrigger(Duration.ofMillis(millis));
        rate.setFixedRate(true);
        return rate;
    }

    // ---- fire times

    /** Two replicas with clocks apart go through a night in which theirs are changed, on a server with a clock of its own. */
    @ParameterizedTest
    @CsvSource({
        "2026-03-27T12:00:00Z, 0 0 3 * * *",
        "2026-03-27T12:00:00Z, 0 30 2 * * *",
        "2026-03-27T12:00:00Z, @hourly",
        "2026-10-23T12:00:00Z, 0 0 3 * * *",
        "2026-10-23T12:00:00Z, 0 30 2 * * *",
        "2026-10-23T12:00:00Z, @hourly",
        "2026-10-23T12:00:00Z, 0 */20 * * * *"
    })
    void aNightInWhichClocksAreChangedHasTheTicksThatTheZoneSays(Instant begin, String expression) {
        Instant end = begin.plus(Duration.ofDays(4));
        CronTrigger cron = new CronTrigger(expression, BERLIN);
        Set<Instant> fireTimes = new LinkedHashSet<>();
        for (Instant next = TickingTrigger.next(cron, Clock.systemUTC(), begin);
                next != null && next.isBefore(end);
                next = TickingTrigger.next(cron, Clock.systemUTC(), next)) {
            fireTimes.add(next);
        }
        assertThat(fireTimes).hasSizeGreaterThan(2);

        for (long skew : new long[] {0, 180, -180}) {
            Set<Instant> ticks = new LinkedHashSet<>();
            TickingTrigger trigger = new TickingTrigger(cron, "cron");
            Instant server = begin;
            while (true) {
                // As a scheduler does: when the task has run it asks for the next fire time, and waits for it.
                Instant replica = server.plusSeconds(skew);
                SimpleTriggerContext context = new SimpleTriggerContext(Clock.fixed(replica, ZoneOffset.UTC));
                Instant next = trigger.nextExecution(context);
                if (next == null || next.minusSeconds(skew).isAfter(end.plusSeconds(1))) {
                    break;
                }
                server = next.minusSeconds(skew).plusMillis(4);
                TickingTrigger fired = new TickingTrigger(cron, "cron");
                fired.nextExecution(at(next, next.plusMillis(4)));
                ticks.add(tick(fired, server));
            }
            assertThat(ticks).as("skew " + skew).containsAll(fireTimes);
            assertThat(ticks.stream().filter(tick -> tick.isBefore(end) && tick.isAfter(begin)))
                    .as("skew " + skew)
                    .containsExactlyElementsOf(fireTimes);
        }
    }

    /** The context of a scheduler that is asked for the fire time that comes at that moment, seen when it has come. */
    private static SimpleTriggerContext at(Instant fireTime, Instant now) {
        SimpleTriggerContext context = new SimpleTriggerContext(Clock.fixed(now, ZoneOffset.UTC));
        Instant before = fireTime.minusMillis(1);
        context.update(before, before, before);
        return context;
    }

    private static Instant tick(TickingTrigger fired, Instant serverNow) {
        ServerClock server = new ServerClock();
        server.learn(System.nanoTime(), serverNow, System.nanoTime());
        Instant tick = TickGuard.of(fired.fired().tick("Job.tick"), server).tick();
        assertThat(tick).isNotNull();
        return tick;
    }

    @Test
    void aFiringThatWasDroppedLeavesTheLaterOnesTheirOwnFireTimes() {
        TickingTrigger trigger = new TickingTrigger(new CronTrigger("* * * * * *", ZoneOffset.UTC), "cron");
        Instant start = Instant.parse("2026-12-02T12:00:00Z");
        for (int i = 0; i < 3; i++) {
            trigger.nextExecution(at(start.plusSeconds(i), start.plusSeconds(2).plusMillis(3)));
        }

        assertThat(((Tick.Calendar) trigger.fired().tick("x")).fireTime()).isEqualTo(start.plusSeconds(2));
        assertThat(((Tick.Calendar) trigger.fired().tick("x")).fireTime()).isEqualTo(start.plusSeconds(2));
    }

    @ParameterizedTest
    @CsvSource({"2026-12-03T02:59:59.800Z, 2026-12-03T03:00:00Z", "2026-12-02T03:20:00Z, 2026-12-02T03:00:00Z"})
    void aFiringThatComesBeforeItsTimeHasTheFireTimeThatIsNearest(Instant now, Instant fireTime) {
        TickingTrigger trigger = new TickingTrigger(new CronTrigger("0 0 3 * * *", ZoneOffset.UTC), "cron");
        Instant first = Instant.parse("2026-12-02T03:00:00Z");
        trigger.nextExecution(at(first, first));
        trigger.fired();
        trigger.nextExecution(at(first.plus(Duration.ofDays(1)), now));

        assertThat(((Tick.Calendar) trigger.fired().tick("x")).fireTime()).isEqualTo(fireTime);
    }

    @Test
    void aFiringThatComesLateLeavesTheNextOneItsFireTimeAlthoughThatIsNearer() {
        TickingTrigger trigger = new TickingTrigger(new CronTrigger("* * * * * *", ZoneOffset.UTC), "cron");
        Instant start = Instant.parse("2026-12-02T12:00:00Z");
        trigger.nextExecution(at(start, start));
        trigger.fired();
        for (int i = 1; i < 3; i++) {
            trigger.nextExecution(at(start.plusSeconds(i), start.plusSeconds(1).plusMillis(800)));
        }

        assertThat(((Tick.Calendar) trigger.fired().tick("x")).fireTime()).isEqualTo(start.plusSeconds(1));
    }

    // ---- in a context

    @EnableScheduling
    @EnableResilientMethods
    static class Failing {

        @Scheduled(cron = "* * * * * *")
        @Retryable(maxRetries = 2, delay = 10)
        void tick() {
            int run = runs.incrementAndGet();
            ran.add(run + " at " + Instant.now().getEpochSecond());
            if (run % 2 == 1) {
                throw new IllegalStateException("the first attempt fails");
            }
        }
    }

    @Test
    void aRetryIsNeverTakenForATickThatHasAlreadyRun() {
        start("A", Replica.DEFAULTS, Failing.class);

        await().atMost(Duration.ofSeconds(10)).until(() -> runs.get() >= 4);
        assertThat(ran.get(0).replaceAll(".* at", "")).isEqualTo(ran.get(1).replaceAll(".* at", ""));
    }

    @EnableScheduling
    static class Quick {

        @Scheduled(cron = "* * * * * *")
        void tick() {
            runs.incrementAndGet();
        }
    }

    @Test
    void withoutOncePerTickAQuickJobRunsWheneverItsLockIsFree() {
        LockedMethodSettings d = Replica.DEFAULTS;
        LockedMethodSettings settings = new LockedMethodSettings(
                d.scheduled(),
                d.packages(),
                d.everyReplica(),
                false,
                d.modes(),
                d.verification(),
                d.strategy(),
                d.leaseDuration(),
                d.heartbeatInterval(),
                d.order());
        start("A", settings, Skewed.class);
        start("B", settings, Skewed.class);
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 8);

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(7));
    }

    @Import({Quick.class, Clocks.class})
    @Configuration(proxyBeanMethods = false)
    static class Skewed {}

    /** Each replica half a second apart from the one before. */
    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Clocks {

        private static final AtomicInteger started = new AtomicInteger();

        @Bean
        static ThreadPoolTaskScheduler taskScheduler() {
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.setClock(
                    Clock.offset(Clock.systemDefaultZone(), Duration.ofMillis(400L * started.getAndIncrement())));
            return scheduler;
        }
    }

    /** Asks for the next fire time as soon as it has handed the task over. */
    @Import(Quick.class)
    @Configuration(proxyBeanMethods = false)
    static class OnThreadsOfTheirOwn {

        @Bean
        static SimpleAsyncTaskScheduler taskScheduler() {
            return new SimpleAsyncTaskScheduler();
        }
    }

    @Test
    void aSchedulerThatHandsTasksOverMissesNoTick() {
        start("A", Replica.DEFAULTS, OnThreadsOfTheirOwn.class);
        start("B", Replica.DEFAULTS, OnThreadsOfTheirOwn.class);
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 5);

        assertThat(Duration.ofNanos(System.nanoTime() - begun))
                .isBetween(Duration.ofMillis(3500), Duration.ofSeconds(7));
    }

    @Configuration(proxyBeanMethods = false)
    static class Nothing {}

    @ParameterizedTest
    @CsvSource({"true", "false"})
    void aTaskOfASchedulerThatIsSetUpInCodeRunsOncePerTick(boolean cron) {
        for (String label : List.of("A", "B", "C")) {
            Replica replica = start(label, Replica.DEFAULTS, Nothing.class);
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.initialize();
            open.add(0, scheduler::shutdown);
            OncePerTick.of(
                            replica.registry(),
                            LockRequest.of("in code"),
                            runs::incrementAndGet,
                            cron ? new CronTrigger("* * * * * *") : rate(1000))
                    .scheduleWith(scheduler);
        }
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 4);

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isGreaterThan(Duration.ofMillis(2500));
    }

    // ---- tasks of a SchedulingConfigurer

    static class CalledByATask {

        @RunOnce("by a task")
        public void run() {
            runs.incrementAndGet();
        }
    }

    /** Says of itself what no scheduled method would say. */
    record NamedTask(Runnable work) implements Runnable {

        @Override
        public void run() {
            work.run();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import(CalledByATask.class)
    static class TasksInCode implements SchedulingConfigurer {

        private final CalledByATask bean;

        TasksInCode(CalledByATask bean) {
            this.bean = bean;
        }

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            registrar.addFixedRateTask(new NamedTask(bean::run), Duration.ofSeconds(1));
        }
    }

    @Test
    void aTaskOfAConfigurerIsATickOfWhateverLockedMethodItCalls() {
        start("A", Replica.DEFAULTS, TasksInCode.class);
        start("B", Replica.DEFAULTS, TasksInCode.class);
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 4);

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isGreaterThan(Duration.ofMillis(2500));
    }

    /** Does not register tasks, but schedules them: each is another method of the registrar. */
    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import({CalledByATask.class, Clocks.class})
    abstract static class ScheduledInCode implements SchedulingConfigurer {

        final Runnable task;

        ScheduledInCode(CalledByATask bean) {
            task = new NamedTask(bean::run);
        }
    }

    static class RateScheduledInCode extends ScheduledInCode {

        RateScheduledInCode(CalledByATask bean) {
            super(bean);
        }

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            registrar.scheduleFixedRateTask(new FixedRateTask(task, Duration.ofSeconds(1), Duration.ZERO));
        }
    }

    @Order(Ordered.HIGHEST_PRECEDENCE)
    static class CronScheduledInCode extends ScheduledInCode {

        CronScheduledInCode(CalledByATask bean) {
            super(bean);
        }

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            registrar.scheduleCronTask(new CronTask(task, "* * * * * *"));
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {RateScheduledInCode.class, CronScheduledInCode.class})
    void aTaskThatAConfigurerSchedulesAtOnceIsATickToo(Class<?> jobs) {
        start("A", Replica.DEFAULTS, jobs);
        start("B", Replica.DEFAULTS, jobs);
        int before = runs.get();
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= before + 4);

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isGreaterThan(Duration.ofMillis(2500));
    }

    @Test
    void ofTwoThatCouldMakeTicksTheOuterOneDoesIt() {
        List<Object> atLast = new ArrayList<>();
        List<Object> between = new ArrayList<>();
        ScheduledTaskRegistrar registrar = new ScheduledTaskRegistrar();
        registrar.setTaskScheduler(passing(atLast, null));
        TickingConfigurer ticking = new TickingConfigurer(new Ticks());

        ticking.beforeAll().configureTasks(registrar);
        registrar.setTaskScheduler(passing(between, registrar.getScheduler()));
        ticking.afterAll().configureTasks(registrar);
        registrar.scheduleFixedRateTask(new FixedRateTask(runs::get, Duration.ofSeconds(1), Duration.ZERO));
        registrar.scheduleFixedDelayTask(new FixedDelayTask(runs::get, Duration.ofSeconds(1), Duration.ZERO));
        registrar.scheduleCronTask(new CronTask(runs::get, "* * * * * *"));

        assertThat(registrar.getScheduler()).isInstanceOf(TickingTaskScheduler.class);
        assertThat(atLast).hasSize(3).isEqualTo(between);
    }

    private static TaskScheduler passing(List<Object> tasks, @Nullable TaskScheduler to) {
        return (TaskScheduler) Proxy.newProxyInstance(
                TickTests.class.getClassLoader(), new Class<?>[] {TaskScheduler.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("getClock")) {
                        return Clock.systemUTC();
                    }
                    tasks.add(arguments[0]);
                    return to == null ? null : method.invoke(to, arguments);
                });
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import(CalledByATask.class)
    static class LambdasInCode implements SchedulingConfigurer {

        private final CalledByATask bean;

        LambdasInCode(CalledByATask bean) {
            this.bean = bean;
        }

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            for (int i = 0; i < 3; i++) {
                registrar.addFixedRateTask(() -> bean.run(), Duration.ofMillis(100));
                registrar.addCronTask(() -> bean.run(), "* * * * * *");
            }
        }
    }

    @Test
    void ticksOfLambdasThatNothingTellsApartAreToldOfOnce(CapturedOutput output) {
        start("A", Replica.DEFAULTS, LambdasInCode.class);
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 40);

        assertThat(output.getOut().split("CalledByATask.run is called by several tasks", -1))
                .as("for each of the two triggers")
                .hasSize(3);
    }

    static class EachSecond {

        @Scheduled(fixedRate = 1000)
        void tick() {
            runs.incrementAndGet();
        }
    }

    /** Has no order, and its definition comes after those of interception. */
    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import(EachSecond.class)
    static class ChoosesItsScheduler implements SchedulingConfigurer, DisposableBean {

        private final ThreadPoolTaskScheduler own = new ThreadPoolTaskScheduler();
        private ScheduledTaskRegistrar registrar = new ScheduledTaskRegistrar();

        @Override
        public void configureTasks(ScheduledTaskRegistrar its) {
            registrar = its;
            own.initialize();
            registrar.setTaskScheduler(own);
        }

        @Nullable
        TaskScheduler chosen() {
            return registrar.getScheduler();
        }

        @Override
        public void destroy() {
            own.shutdown();
        }
    }

    @Test
    void aSchedulerThatAnotherConfigurerSetsHasTicksToo() {
        Replica a = start("A", Replica.DEFAULTS, ChoosesItsScheduler.class);
        start("B", Replica.DEFAULTS, ChoosesItsScheduler.class);
        assertThat(a.bean(ChoosesItsScheduler.class).chosen()).isInstanceOf(TickingTaskScheduler.class);
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= 4);

        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isGreaterThan(Duration.ofMillis(2500));
    }

    interface DefaultTick {

        @Scheduled(cron = "0 0 3 * * *")
        default void tick() {}
    }

    interface FurtherDown extends DefaultTick {}

    static class OfAnInterfaceFurtherUp implements FurtherDown {}

    static class BehindAnInterfaceFurtherUp implements FurtherDown {

        @Override
        @Scheduled(cron = "0 0 3 * * *")
        public void tick() {}
    }

    abstract static class NonPublic {

        @Scheduled(cron = "0 0 3 * * *")
        public void tick() {}
    }

    public static class OfANonPublicClass extends NonPublic {}

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import({OfAnInterfaceFurtherUp.class, BehindAnInterfaceFurtherUp.class, OfANonPublicClass.class})
    static class Inherited {}

    /** What is not known as a tick is a direct call: short jobs would run on every replica. */
    @Test
    void aTaskOfAnInheritedMethodIsATickWhereverThatIsDeclared() {
        Replica replica = start("A", Replica.DEFAULTS, Inherited.class);

        assertThat(replica.bean(NextTicks.class).byLock())
                .containsOnlyKeys(
                        "OfAnInterfaceFurtherUp.tick", "BehindAnInterfaceFurtherUp.tick", "OfANonPublicClass.tick");
    }

    @ParameterizedTest
    @CsvSource({
        "dev.pglock.aop.TickTests$Quick.tick, true",
        "orders.rollup, false",
        "NamedTask[work=x], false",
        "dev.pglock.aop.TickTests$Quick.nothing, false",
        "plain, false"
    })
    void aTaskMadeFromAMethodIsKnownByWhatItSays(String description, boolean ofMethod) {
        assertThat(TaskMethod.saying(description).isKnown()).isEqualTo(ofMethod);
    }

    // ---- tasks of publishers, which say what proxy they call

    static class PublisherOfAClass {

        @Scheduled(cron = "* * * * * *")
        public Mono<Void> tick() {
            return Mono.fromRunnable(runs::incrementAndGet);
        }
    }

    /** Is still running when the other replica's tick comes. */
    static class LongPublisher {

        @Scheduled(cron = "* * * * * *")
        public Mono<Long> tick() {
            return Mono.defer(() -> {
                runs.incrementAndGet();
                return Mono.delay(Duration.ofMillis(600));
            });
        }
    }

    interface PublishesTicks {

        Flux<Void> tick();
    }

    interface PublishesTicksToo extends PublishesTicks {}

    static class PublisherOfAnInterface implements PublishesTicksToo {

        @Override
        @Scheduled(cron = "* * * * * *")
        public Flux<Void> tick() {
            return Flux.defer(() -> {
                runs.incrementAndGet();
                return Flux.empty();
            });
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {PublisherOfAClass.class, LongPublisher.class, PublisherOfAnInterface.class})
    void aScheduledPublisherRunsOncePerTickHoweverShort(Class<?> job, CapturedOutput output) {
        Replica a = Replica.start("A", space, Replica.DEFAULTS, Map.of(), Clocks.class, job);
        open.add(a);
        open.add(Replica.start("B", space, Replica.DEFAULTS, Map.of(), Clocks.class, job));
        int before = runs.get();
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> runs.get() >= before + 5);

        assertThat(Duration.ofNanos(System.nanoTime() - begun))
                .isBetween(Duration.ofMillis(3300), Duration.ofSeconds(7));
        assertThat(output).doesNotContain("Unexpected error occurred in scheduled reactive task");
        assertThat(a.bean(NextTicks.class).byLock()).containsOnlyKeys(job.getSimpleName() + ".tick");
    }

    @EnableScheduling
    static class Never {

        @Scheduled(fixedDelay = Long.MAX_VALUE)
        void delay() {
            runs.incrementAndGet();
        }

        @Scheduled(fixedRate = Long.MAX_VALUE)
        void rate() {
            runs.incrementAndGet();
        }
    }

    @Test
    void aPeriodWithoutEndMeansOnceAtTheStartOfEachReplica() {
        start("A", Replica.DEFAULTS, Never.class);
        await().atMost(Duration.ofSeconds(10)).until(() -> runs.get() == 2);
        start("B", Replica.DEFAULTS, Never.class);
        await().atMost(Duration.ofSeconds(10)).until(() -> runs.get() == 4);
    }

    // ---- one method on beans of several classes

    abstract static class Inheritable {

        public void run() {
            ran.add(getClass().getSimpleName());
        }
    }

    static class CronBase extends Inheritable {

        @Override
        @Scheduled(cron = "* * * * * *")
        public void run() {
            super.run();
        }
    }

    static class RateBase extends Inheritable {

        @Override
        @Scheduled(fixedRate = 1000)
        public void run() {
            super.run();
        }
    }

    static class AsyncBase extends Inheritable {

        @Override
        @Async
        @Scheduled(cron = "* * * * * *")
        public void run() {
            super.run();
        }
    }

    static class CronFirst extends CronBase {}

    static class CronSecond extends CronBase {}

    static class RateFirst extends RateBase {}

    static class RateSecond extends RateBase {}

    static class AsyncFirst extends AsyncBase {}

    static class AsyncSecond extends AsyncBase {}

    private static List<Arguments> inherited() {
        return List.of(
                Arguments.of(CronFirst.class, CronSecond.class, true),
                Arguments.of(RateFirst.class, RateSecond.class, true),
                Arguments.of(AsyncFirst.class, AsyncSecond.class, true),
                Arguments.of(AsyncFirst.class, AsyncSecond.class, false));
    }

    /** In a rolling deploy, say, or for its profiles. */
    @ParameterizedTest
    @MethodSource("inherited")
    void whichOtherBeansInheritAMethodOnWhichReplicaMattersNotToItsTicks(
            Class<?> first, Class<?> second, boolean oneIsOnlyHere) {
        open.add(Replica.start("A", space, Replica.DEFAULTS, Map.of(), Asynchronous.class, first, second));
        Class<?>[] others = oneIsOnlyHere
                ? new Class<?>[] {Asynchronous.class, second}
                : new Class<?>[] {Asynchronous.class, first, second};
        open.add(Replica.start("B", space, Replica.DEFAULTS, Map.of(), others));
        ran.clear();
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20))
                .until(() -> Collections.frequency(ran, second.getSimpleName()) >= 6
                        && Collections.frequency(ran, first.getSimpleName()) >= 5);

        assertThat(Duration.ofNanos(System.nanoTime() - begun))
                .isBetween(Duration.ofMillis(4300), Duration.ofSeconds(9));
        assertThat(Collections.frequency(ran, first.getSimpleName())).isLessThanOrEqualTo(8);
        assertThat(Collections.frequency(ran, second.getSimpleName())).isLessThanOrEqualTo(8);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    @Import(Clocks.class)
    static class Asynchronous {}

    @Test
    void aNativeImageKeepsWhatTellsTheBeanOfATask() throws ClassNotFoundException {
        RuntimeHints hints = new RuntimeHints();
        new TaskMethod.Hints().registerHints(hints, null);

        Class<?> wrapper = new Task(runs::get).getRunnable().getClass();
        assertThat(RuntimeHintsPredicates.reflection().onFieldAccess(wrapper.getName(), "runnable"))
                .accepts(hints);
    }

    // ---- @Async, and tasks that fire once

    private static final Runs slow = new Runs();

    static class Slow {

        @Async
        @Scheduled(fixedRate = 100)
        void tick() {
            slow.run("slow", 350);
        }
    }

    @EnableScheduling
    @EnableAsync(order = Ordered.HIGHEST_PRECEDENCE)
    @Import(Slow.class)
    static class AsyncOutermost {}

    @EnableScheduling
    @EnableAsync(order = Ordered.LOWEST_PRECEDENCE)
    @Import(Slow.class)
    static class AsyncInnermost {}

    /** The scheduler's thread has long gone on while the worker runs. */
    @ParameterizedTest
    @ValueSource(classes = {AsyncOutermost.class, AsyncInnermost.class})
    void anAsyncJobThatIsLongerThanItsPeriodNeverOverlaps(Class<?> jobs) {
        start("A", Replica.DEFAULTS, jobs);
        start("B", Replica.DEFAULTS, jobs);
        int before = slow.count("slow");

        await().atMost(Duration.ofSeconds(20)).until(() -> slow.count("slow") >= before + 5);
        assertThat(slow.overlaps).isEmpty();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface OnAnotherThread {}

    static class ByAnotherAnnotation {

        @OnAnotherThread
        @Scheduled(cron = "* * * * * *")
        void tick() {
            ran.add(Thread.currentThread().getName());
        }

        @OnAnotherThread
        @RunOnce("of another thread")
        public Future<String> result() {
            return CompletableFuture.completedFuture("result");
        }
    }

    @EnableAsync(annotation = OnAnotherThread.class)
    @Import({ByAnotherAnnotation.class, Clocks.class})
    static class AsyncByAnotherAnnotation {

        @Bean
        static TaskExecutor taskExecutor() {
            return new SimpleAsyncTaskExecutor("worker-");
        }
    }

    @Test
    void whatIsHandedOverByAnotherAnnotationThanAsyncHasTicksAndResultsToo() throws Exception {
        Replica a = start("A", Replica.DEFAULTS, AsyncByAnotherAnnotation.class);
        start("B", Replica.DEFAULTS, AsyncByAnotherAnnotation.class);
        int before = ran.size();
        long begun = System.nanoTime();
        await().atMost(Duration.ofSeconds(20)).until(() -> ran.size() >= before + 5);

        assertThat(Duration.ofNanos(System.nanoTime() - begun))
                .isBetween(Duration.ofMillis(3300), Duration.ofSeconds(7));
        assertThat(ran).allMatch(thread -> thread.startsWith("worker-"));
        assertThat(a.bean(ByAnotherAnnotation.class).result().get(5, TimeUnit.SECONDS))
                .isEqualTo("result");
    }

    @EnableScheduling
    static class Once {

        @Scheduled(initialDelay = 100)
        void atStart() {
            slow.run("once", 50);
            runs.incrementAndGet();
        }
    }

    @Test
    void aTaskThatFiresOnceRunsAtTheStartOfEachReplica() {
        start("A", Replica.DEFAULTS, Once.class);
        await().atMost(Duration.ofSeconds(10)).until(() -> runs.get() == 1);
        start("B", Replica.DEFAULTS, Once.class);
        await().atMost(Duration.ofSeconds(10)).until(() -> runs.get() == 2);

        assertThat(slow.overlaps).isEmpty();
    }
}
