package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.annotation.RunOnce;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.context.LifecycleAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.concurrent.ExecutorConfigurationSupport;

/** What happens to bodies and their locks when the application stops. The locks are in memory: no database is needed. */
@ExtendWith(OutputCaptureExtension.class)
class PgLockLifecycleTests {

    private static ConfigurableApplicationContext start(Class<?> configuration, String... properties) {
        SpringApplication application = new SpringApplicationBuilder(configuration)
                .web(WebApplicationType.NONE)
                .bannerMode(org.springframework.boot.Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties("pglock.strategy=local", "spring.application.name=test")
                .properties(properties)
                .build();
        return application.run();
    }

    private static Duration close(ConfigurableApplicationContext context) {
        long began = System.nanoTime();
        context.close();
        return Duration.ofNanos(System.nanoTime() - began);
    }

    @ParameterizedTest
    @CsvSource({"false, false", "false, true", "true, false", "true, true"})
    void aTickThatRunsKeepsItsLockUntilItHasEnded(boolean virtual, boolean awaiting, CapturedOutput output)
            throws Exception {
        assumeTrue(!virtual || Runtime.version().feature() >= 21, "this JDK has no virtual threads");
        ConfigurableApplicationContext context = start(
                Ticking.class,
                "spring.threads.virtual.enabled=" + virtual,
                "spring.task.scheduling.shutdown.await-termination=" + awaiting,
                "spring.task.scheduling.shutdown.await-termination-period=10s",
                "spring.lifecycle.timeout-per-shutdown-phase=10s");
        Events events = context.getBean(Events.class);
        assertThat(events.running.await(5, TimeUnit.SECONDS)).isTrue();

        close(context);

        assertThat(events.all).containsExactly("acquired", "ended held", "released SUCCEEDED");
        assertThat(warnings(output)).isEmpty();
    }

    @Test
    void whatRunsIsWaitedFor(CapturedOutput output) throws Exception {
        ConfigurableApplicationContext context = start(Idle.class, "spring.lifecycle.timeout-per-shutdown-phase=10s");
        try (Body body = Body.of(context, Duration.ofMillis(700))) {
            assertThat(close(context)).isBetween(Duration.ofMillis(300), Duration.ofSeconds(5));
            assertThat(body.end()).isEqualTo("ended held");
            assertThat(warnings(output)).isEmpty();
        }
    }

    @Test
    void whatOutlastsTheTimeIsInterruptedAndThenReleased() throws Exception {
        ConfigurableApplicationContext context =
                start(Idle.class, "spring.lifecycle.timeout-per-shutdown-phase=1200ms");
        Events events = context.getBean(Events.class);
        try (Body body = Body.of(context, Duration.ofMinutes(1))) {
            assertThat(close(context)).isBetween(Duration.ofMillis(700), Duration.ofSeconds(3));
            assertThat(body.end()).isEqualTo("interrupted held");
            assertThat(events.all).endsWith("released FAILED");
        }
    }

    @Test
    void whatIgnoresTheInterruptKeepsItsLockAndThatIsSaid(CapturedOutput output) throws Exception {
        ConfigurableApplicationContext context = start(Idle.class, "spring.lifecycle.timeout-per-shutdown-phase=600ms");
        Events events = context.getBean(Events.class);
        CountDownLatch end = new CountDownLatch(1);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try {
            CountDownLatch running = new CountDownLatch(1);
            LockRegistry registry = context.getBean(LockRegistry.class);
            Future<?> body = thread.submit(() -> registry.runOnce("stubborn", () -> {
                running.countDown();
                while (end.getCount() > 0) {
                    Thread.onSpinWait();
                }
            }));
            assertThat(running.await(5, TimeUnit.SECONDS)).isTrue();

            assertThat(close(context)).isLessThan(Duration.ofSeconds(4));

            assertThat(body.isDone()).isFalse();
            assertThat(events.all).containsExactly("acquired", "lost CLOSED");
            assertThat(output).contains("go on although they were interrupted");
        } finally {
            end.countDown();
            thread.shutdownNow();
        }
    }

    @Test
    void theTimeThatSchedulersHaveUsedIsNotGrantedAgain() throws Exception {
        ConfigurableApplicationContext context =
                start(SlowToStop.class, "spring.lifecycle.timeout-per-shutdown-phase=3s");
        try (Body body = Body.of(context, Duration.ofMinutes(1))) {
            // 2.4 s are used before, so that what is left is less than the last wait alone
            assertThat(close(context)).isBetween(Duration.ofMillis(2400), Duration.ofMillis(5200));
            assertThat(body.end()).isEqualTo("interrupted held");
        }
    }

    @Test
    void aStopTakesNoNewLocksAndAStartTakesThemAgain() throws Exception {
        try (ConfigurableApplicationContext context = start(Idle.class)) {
            LockRegistry registry = context.getBean(LockRegistry.class);
            PgLockLifecycle lifecycle = context.getBean(PgLockLifecycle.class);
            assertThat(lifecycle.isRunning()).isTrue();

            context.stop();

            assertThat(lifecycle.isRunning()).isFalse();
            assertThat(registry.tryAcquire(LockRequest.of("a"))).isEmpty();
            assertThatThrownBy(() -> registry.acquire(LockRequest.of("a")))
                    .isInstanceOf(LockNotAcquiredException.class)
                    .hasMessageContaining("stopping");

            context.start();

            assertThat(lifecycle.isRunning()).isTrue();
            registry.tryAcquire(LockRequest.of("a")).orElseThrow().close();
        }
    }

    @Test
    void aStopDoesNotBlockWhoeverStops() throws Exception {
        try (ConfigurableApplicationContext context = start(Idle.class);
                Body body = Body.of(context, Duration.ofSeconds(3))) {
            PgLockLifecycle lifecycle = context.getBean(PgLockLifecycle.class);
            CompletableFuture<Void> stopped = new CompletableFuture<>();
            long began = System.nanoTime();

            lifecycle.stop(() -> stopped.complete(null));

            assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(1));
            assertThat(stopped).isNotDone();
            assertThat(body.end()).isEqualTo("ended held");
            assertThat(stopped).succeedsWithin(Duration.ofSeconds(2));
        }
    }

    @Test
    void anIdleRegistryStopsAtOnceAndInSilence(CapturedOutput output) {
        ConfigurableApplicationContext context = start(Idle.class);
        context.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of("a"))
                .orElseThrow()
                .close();
        assertThat(close(context)).isLessThan(Duration.ofSeconds(3));
        assertThat(warnings(output)).isEmpty();
        await().atMost(Duration.ofSeconds(6)).until(PgLockLifecycleTests::threads, List::isEmpty);
    }

    @Test
    void itStartsBeforeTheSchedulersAndStopsAfterThem() {
        try (ConfigurableApplicationContext context = start(Idle.class)) {
            assertThat(context.getBean(PgLockLifecycle.class).getPhase())
                    .isLessThan(ExecutorConfigurationSupport.DEFAULT_PHASE);
        }
    }

    @Test
    void lazyInitializationLeavesTheTicksLocked() throws Exception {
        ConfigurableApplicationContext context = start(Ticking.class, "spring.main.lazy-initialization=true");
        assertThat(context.getBeanFactory().containsSingleton("pgLockLifecycle"))
                .as("verification and stop exist")
                .isTrue();
        assertThat(context.getBeanFactory().containsSingleton("pgLockRegistry")).isTrue();
        Events events = context.getBean(Events.class);
        assertThat(events.running.await(5, TimeUnit.SECONDS)).isTrue();
        close(context);
        assertThat(context.isActive()).isFalse();
        assertThat(events.all).containsExactly("acquired", "ended held", "released SUCCEEDED");
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("pglock-"))
                .toList();
    }

    private static List<String> warnings(CapturedOutput output) {
        return output.getAll()
                .lines()
                .filter(line -> line.contains(" WARN ") || line.contains(" ERROR "))
                .toList();
    }

    /** A body on a thread of its own. */
    private record Body(ExecutorService thread, Future<String> result) implements AutoCloseable {

        static Body of(ConfigurableApplicationContext context, Duration duration) throws InterruptedException {
            LockRegistry registry = context.getBean(LockRegistry.class);
            ExecutorService thread = Executors.newSingleThreadExecutor();
            CountDownLatch running = new CountDownLatch(1);
            String[] end = {"not run"};
            Future<String> result = thread.submit(() -> {
                try {
                    boolean ignored = registry.runOnce("body", () -> {
                        running.countDown();
                        try {
                            TimeUnit.MILLISECONDS.sleep(duration.toMillis());
                            end[0] = "ended " + held();
                        } catch (InterruptedException e) {
                            end[0] = "interrupted " + held();
                            throw new IllegalStateException(e);
                        }
                    });
                } catch (RuntimeException e) {
                    // its end is told by the text
                }
                return end[0];
            });
            assertThat(running.await(5, TimeUnit.SECONDS)).isTrue();
            return new Body(thread, result);
        }

        String end() throws Exception {
            return result.get(5, TimeUnit.SECONDS);
        }

        @Override
        public void close() {
            thread.shutdownNow();
        }
    }

    private static String held() {
        return LockContext.current().isHeld() ? "held" : "NOT HELD";
    }

    static final class Events implements LockListener {

        final CountDownLatch running = new CountDownLatch(1);
        final List<String> all = new CopyOnWriteArrayList<>();

        @Override
        public void acquired(LockHandle lock) {
            all.add("acquired");
        }

        @Override
        public void released(LockHandle lock, RunOutcome outcome) {
            all.add("released " + outcome);
        }

        @Override
        public void lost(LockHandle lock, LossReason reason) {
            all.add("lost " + reason);
        }
    }

    static class Job {

        private final Events events;

        Job(Events events) {
            this.events = events;
        }

        @Scheduled(fixedDelay = 60_000)
        @RunOnce("job")
        void run() throws InterruptedException {
            events.running.countDown();
            TimeUnit.MILLISECONDS.sleep(1_000);
            events.all.add("ended " + held());
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        LifecycleAutoConfiguration.class,
        TaskSchedulingAutoConfiguration.class,
        PgLockAutoConfiguration.class,
        PgLockInterceptionAutoConfiguration.class
    })
    static class Idle {

        @Bean
        Events events() {
            return new Events();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Ticking extends Idle {

        @Bean
        Job job(Events events) {
            return new Job(events);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SlowToStop extends Idle {

        @Bean
        SmartLifecycle scheduler() {
            return new SmartLifecycle() {

                private volatile boolean running;

                @Override
                public int getPhase() {
                    return ExecutorConfigurationSupport.DEFAULT_PHASE;
                }

                @Override
                public void start() {
                    running = true;
                }

                @Override
                public void stop() {
                    // A scheduler that waits for a task
                    await().pollDelay(Duration.ofMillis(2400)).until(() -> true);
                    running = false;
                }

                @Override
                public boolean isRunning() {
                    return running;
                }
            };
        }
    }
}
