package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.context.LifecycleAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** What is left behind in the database and in the JVM when an application ends. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class PgLockShutdownTests {

    private static final String SESSIONS =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

    private TestDatabase database;

    @BeforeEach
    void createDatabase() {
        database = PostgresServer.shared().newDatabase();
    }

    @AfterEach
    void dropDatabase() {
        database.close();
    }

    private ConfigurableApplicationContext start(String url, String... properties) {
        return new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(
                        "spring.application.name=test",
                        "spring.datasource.url=" + url,
                        "spring.datasource.username=" + database.username(),
                        "spring.datasource.password=" + database.password(),
                        "pglock.lease-duration=2s")
                .properties(properties)
                .run();
    }

    @Test
    void thirtyApplicationsLeaveNeitherThreadsNorSessionsBehind() {
        for (int i = 0; i < 30; i++) {
            try (ConfigurableApplicationContext context = start(database.url())) {
                LockHandle lock = context.getBean(LockRegistry.class)
                        .tryAcquire(LockRequest.of("a"))
                        .orElseThrow();
                assertThat(lock.isHeld()).isTrue();
                lock.close();
            }
        }
        await().atMost(Duration.ofSeconds(5)).untilAsserted(() -> {
            assertThat(threads()).isEmpty();
            assertThat(database.number(SESSIONS)).isZero();
        });
    }

    @Test
    void aBodyThatOutlastsTheLeaseKeepsItsLockWhileTheApplicationStops(CapturedOutput output) throws Exception {
        ConfigurableApplicationContext context =
                start(database.url(), "spring.lifecycle.timeout-per-shutdown-phase=20s");
        LockRegistry registry = context.getBean(LockRegistry.class);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (ConfigurableApplicationContext other = start(database.url())) {
            CountDownLatch running = new CountDownLatch(1);
            CountDownLatch end = new CountDownLatch(1);
            Future<Boolean> body = thread.submit(() -> registry.runOnce("a", () -> {
                running.countDown();
                awaitQuietly(end);
            }));
            assertThat(running.await(5, TimeUnit.SECONDS)).isTrue();
            Thread closing = new Thread(context::close);
            closing.start();
            // Twice the lease: heartbeats are the last thing to stop
            await().during(Duration.ofSeconds(4))
                    .atMost(Duration.ofSeconds(5))
                    .until(() -> other.getBean(LockRegistry.class)
                            .tryAcquire(LockRequest.of("a"))
                            .isEmpty());
            end.countDown();
            assertThat(body.get(5, TimeUnit.SECONDS)).isTrue();
            await().atMost(Duration.ofSeconds(1))
                    .until(() -> other.getBean(LockRegistry.class).runOnce("a", () -> {}));
            closing.join(5_000);
            assertThat(closing.isAlive()).isFalse();
            assertThat(output.getAll().lines().filter(line -> line.contains(" WARN ") || line.contains(" ERROR ")))
                    .isEmpty();
        } finally {
            thread.shutdownNow();
        }
    }

    /** Whether the body ends by itself, within the time that it has for that, or because it is interrupted. */
    @ParameterizedTest
    @CsvSource({"lease, 10s, false", "lease, 800ms, true", "advisory, 10s, false", "advisory, 800ms, true"})
    void whoWaitsElsewhereHasTheLockAtOnceWhenTheBodyOfAnApplicationThatStopsHasEnded(
            String strategy, String timeout, boolean interrupted) throws Exception {
        String itsStrategy = "pglock.strategy=" + strategy;
        ConfigurableApplicationContext context =
                start(database.url(), itsStrategy, "spring.lifecycle.timeout-per-shutdown-phase=" + timeout);
        HikariDataSource dataSource = context.getBean(HikariDataSource.class);
        LockRegistry registry = context.getBean(LockRegistry.class);
        ExecutorService threads = Executors.newCachedThreadPool();
        try (ConfigurableApplicationContext other = start(database.url(), itsStrategy)) {
            CountDownLatch running = new CountDownLatch(1);
            CountDownLatch end = new CountDownLatch(1);
            CompletableFuture<Boolean> wasInterrupted = new CompletableFuture<>();
            AtomicLong ended = new AtomicLong();
            Future<Boolean> body = threads.submit(() -> registry.runOnce("a", () -> {
                running.countDown();
                boolean hurried = false;
                try {
                    end.await();
                } catch (InterruptedException e) {
                    hurried = true;
                }
                ended.set(System.nanoTime());
                wasInterrupted.complete(hurried);
            }));
            assertThat(running.await(5, TimeUnit.SECONDS)).isTrue();
            Future<Long> next = threads.submit(() -> {
                try (LockHandle lock = other.getBean(LockRegistry.class).acquire(LockRequest.of("a"))) {
                    assertThat(lock.isHeld()).isTrue();
                    return System.nanoTime();
                }
            });
            Future<?> closing = threads.submit(context::close);
            await().until(() -> !registry.runOnce("b", () -> {}));
            if (!interrupted) {
                end.countDown();
            }

            long acquired = next.get(20, TimeUnit.SECONDS);
            assertThat(wasInterrupted.get(5, TimeUnit.SECONDS)).isEqualTo(interrupted);
            assertThat(Duration.ofNanos(acquired - ended.get())).isBetween(Duration.ZERO, Duration.ofSeconds(1));
            assertThat(body.get(5, TimeUnit.SECONDS)).isTrue();
            closing.get(10, TimeUnit.SECONDS);
            assertThat(dataSource.isClosed()).isTrue();
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void anApplicationEndsInTimeAlthoughTheDatabaseHangs() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext context =
                    start(database.url(proxy), "spring.lifecycle.timeout-per-shutdown-phase=2s");
            LockHandle lock = context.getBean(LockRegistry.class)
                    .tryAcquire(LockRequest.of("a"))
                    .orElseThrow();
            proxy.stall();

            long began = System.nanoTime();
            context.close();

            Duration took = Duration.ofNanos(System.nanoTime() - began);
            assertThat(took).isLessThan(Duration.ofSeconds(8));
            assertThat(lock.isHeld()).isFalse();
        }
        await().atMost(Duration.ofSeconds(10)).until(PgLockShutdownTests::threads, List::isEmpty);
    }

    @Test
    void aStartedContextCanBeStoppedAndStartedAgain() throws Exception {
        try (ConfigurableApplicationContext context = start(database.url())) {
            LockRegistry registry = context.getBean(LockRegistry.class);
            for (int i = 0; i < 3; i++) {
                assertThat(registry.runOnce("a", () -> {})).isTrue();
                context.stop();
                assertThat(registry.runOnce("a", () -> {})).isFalse();
                context.start();
            }
            try (LockHandle lock = registry.acquire(LockRequest.of("a"))) {
                await().during(Duration.ofSeconds(3))
                        .atMost(Duration.ofSeconds(4))
                        .until(lock::isHeld);
            }
            assertThat(threads().stream().filter(name -> name.contains("heartbeat")))
                    .as("one heartbeat only")
                    .hasSize(1);
        }
    }

    @Test
    void aBodyThatIgnoresItsInterruptKeepsItsLockUntilItsLeaseEnds() throws Exception {
        ConfigurableApplicationContext context =
                start(database.url(), "spring.lifecycle.timeout-per-shutdown-phase=600ms");
        ExecutorService thread = Executors.newSingleThreadExecutor();
        CountDownLatch end = new CountDownLatch(1);
        try (ConfigurableApplicationContext other = start(database.url())) {
            LockRegistry registry = context.getBean(LockRegistry.class);
            CountDownLatch running = new CountDownLatch(1);
            Future<Boolean> body = thread.submit(() -> registry.runOnce("a", () -> {
                running.countDown();
                while (end.getCount() > 0) {
                    Thread.onSpinWait();
                }
            }));
            assertThat(running.await(5, TimeUnit.SECONDS)).isTrue();
            context.close();
            assertThat(body.isDone()).isFalse();
            String expiry = database.text("SELECT expires_at FROM pglock_lease WHERE holder IS NOT NULL");
            assertThat(other.getBean(LockRegistry.class).tryAcquire(LockRequest.of("a")))
                    .isEmpty();
            // It ends in time, and too late to release anything.
            end.countDown();
            assertThat(body.get(5, TimeUnit.SECONDS)).isTrue();

            LockHandle next = other.getBean(LockRegistry.class).acquire(LockRequest.of("a"));
            assertThat(database.isTrue(
                            "SELECT acquired_at >= ?::timestamptz AND fence = ? FROM pglock_lease",
                            expiry,
                            next.fence()))
                    .isTrue();
            next.close();
        } finally {
            end.countDown();
            thread.shutdownNow();
        }
    }

    @Test
    void sigtermLetsABodyFinishAndReleasesItsLock() throws Exception {
        try (ChildJvm process =
                ChildJvm.start(Terminated.class, database.url(), database.username(), database.password())) {
            process.expect(Terminated.RUNNING, Duration.ofSeconds(60));
            assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE holder IS NOT NULL"))
                    .isEqualTo(1);

            process.terminate();

            process.expect(Terminated.FINISHED, Duration.ofSeconds(10));
            assertThat(process.awaitEnd(Duration.ofSeconds(10))).isTrue();
            assertThat(database.text("SELECT concat(holder, last_outcome) FROM pglock_lease"))
                    .isEqualTo("SUCCEEDED");
        }
    }

    /** A service that is told to end while its job runs. */
    static final class Terminated {

        static final String RUNNING = "the body runs";
        static final String FINISHED = "the body has finished";

        private Terminated() {}

        public static void main(String[] arguments) throws InterruptedException {
            ConfigurableApplicationContext context = new SpringApplicationBuilder(Application.class)
                    .web(WebApplicationType.NONE)
                    .bannerMode(Banner.Mode.OFF)
                    .properties(
                            "spring.application.name=test",
                            "spring.datasource.url=" + arguments[0],
                            "spring.datasource.username=" + arguments[1],
                            "spring.datasource.password=" + arguments[2],
                            "pglock.lease-duration=2s",
                            "spring.lifecycle.timeout-per-shutdown-phase=10s")
                    .run();
            LockHandle lock = context.getBean(LockRegistry.class).acquire(LockRequest.of("a"));
            Boolean ignored = lock.<Boolean, InterruptedException>execute(() -> {
                System.out.println(RUNNING);
                // Longer than the lease
                Thread.sleep(3_000);
                System.out.println(FINISHED);
                return true;
            });
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("pglock"))
                .toList();
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        LifecycleAutoConfiguration.class,
        DataSourceAutoConfiguration.class,
        PgLockAutoConfiguration.class,
        PgLockInterceptionAutoConfiguration.class
    })
    static class Application {}
}
