package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.CompletedVersion;
import dev.pglock.LockContext;
import dev.pglock.LockRegistry;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Strategy;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;

/** Work that is done once for ever, or once at a time, by replicas that come and go. */
@Tag("long")
@ExtendWith(OutputCaptureExtension.class)
class RunOnceTests extends TwoReplicas {

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    // ---- at start-up

    static class Starting extends Application {

        @Bean
        StartJob startJob(JdbcTemplate jdbc, Environment environment) {
            return new StartJob(
                    new Recorder(jdbc, environment.getProperty("pglock.instance-id")),
                    environment.getProperty("test.fails", Boolean.class, false));
        }
    }

    static class StartJob {

        private final Recorder recorder;
        private final boolean fails;

        StartJob(Recorder recorder, boolean fails) {
            this.recorder = recorder;
            this.fails = fails;
        }

        @EventListener(ApplicationReadyEvent.class)
        @RunOnce(name = "init", version = "${test.version:1}")
        void init() {
            if (fails) {
                throw new IllegalStateException("on purpose");
            }
            recorder.run("init", 20);
        }
    }

    @Test
    void aStartListenerRunsOnceAlthoughReplicasStartOneAfterTheOther() {
        ConfigurableApplicationContext a = start("a", Starting.class);
        start("b", Starting.class);
        a.close();
        start("c", Starting.class);
        assertThat(runs("init")).isEqualTo(1);
        CompletedVersion completed = replicas.get(1)
                .getBean(LockRegistry.class)
                .find("init")
                .orElseThrow()
                .completed()
                .get(0);
        assertThat(completed.version()).isEqualTo("1");
        assertThat(completed.holder()).isEqualTo("a");
        assertThat(completed.took()).isGreaterThanOrEqualTo(Duration.ofMillis(20));
        assertThat(completed.finishedAt()).isNotNull();
    }

    @Test
    void aStartThatFailedIsLeftToTheNextReplica() {
        assertThatThrownBy(() -> start("a", Starting.class, "test.fails=true")).hasStackTraceContaining("on purpose");
        start("b", Starting.class);
        start("c", Starting.class);
        assertThat(database.number("SELECT count(*) FROM runs WHERE job = 'init' AND replica = 'b'"))
                .isEqualTo(1);
        assertThat(runs("init")).isEqualTo(1);
    }

    @Configuration(proxyBeanMethods = false)
    static class Child {}

    /** The ready event of a child is published to its parent's listeners too. */
    @Test
    void aStartListenerOfAParentContextRunsOnceAlthoughItHearsItsChildren() {
        ConfigurableApplicationContext parent = start("a", Starting.class);
        for (int i = 0; i < 2; i++) {
            replicas.add(new SpringApplicationBuilder(Child.class)
                    .parent(parent)
                    .web(WebApplicationType.NONE)
                    .bannerMode(Banner.Mode.OFF)
                    .registerShutdownHook(false)
                    .run());
        }
        Collections.reverse(replicas); // children are closed first
        assertThat(runs("init")).isEqualTo(1);
    }

    @Test
    void eachVersionRunsOnceInARollingDeployAndItsRollBack() {
        for (String version : List.of("1", "1", "2", "1", "2", "1", "2", "2")) {
            start("v" + version + "-" + replicas.size(), Starting.class, "test.version=" + version);
        }
        assertThat(runs("init")).isEqualTo(2);
        assertThat(database.number("SELECT count(*) FROM runs WHERE replica IN ('v1-0', 'v2-2')"))
                .isEqualTo(2);
    }

    // ---- WAIT

    static class Waiting extends Application {

        @Bean
        WaitingJob waitingJob(JdbcTemplate jdbc, Environment environment) {
            return new WaitingJob(new Recorder(jdbc, environment.getProperty("pglock.instance-id")));
        }
    }

    static class WaitingJob {

        private final Recorder recorder;

        WaitingJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @RunOnce(name = "migrate", version = "7", ifHeld = IfHeld.WAIT)
        public void migrate(Runnable during) {
            during.run();
            recorder.run("migrate", 10);
        }
    }

    private static Runnable nothing() {
        return () -> {};
    }

    @Test
    void allWaitForTheOneThatRunsAndGoOnWithoutRunning() throws Exception {
        ConfigurableApplicationContext a = start("a", Waiting.class);
        ConfigurableApplicationContext b = start("b", Waiting.class);
        ConfigurableApplicationContext c = start("c", Waiting.class);
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch finish = new CountDownLatch(1);
        Future<?> first = threads.submit(() -> a.getBean(WaitingJob.class).migrate(() -> {
            running.countDown();
            awaitQuietly(finish);
        }));
        assertThat(running.await(10, TimeUnit.SECONDS)).isTrue();
        List<Future<?>> others = new ArrayList<>();
        for (ConfigurableApplicationContext one : List.of(a, b, c, b, c)) {
            others.add(threads.submit(() -> one.getBean(WaitingJob.class).migrate(nothing())));
        }
        // Longer than the lease
        await().during(Duration.ofMillis(2500))
                .atMost(Duration.ofSeconds(4))
                .until(() -> others.stream().noneMatch(Future::isDone));
        finish.countDown();
        first.get(5, TimeUnit.SECONDS);
        for (Future<?> one : others) {
            one.get(5, TimeUnit.SECONDS);
        }
        assertThat(runs("migrate")).isEqualTo(1);
    }

    @Test
    void oneOfThoseWhoWaitTakesOverWhenTheRunnerFails() throws Exception {
        ConfigurableApplicationContext a = start("a", Waiting.class);
        ConfigurableApplicationContext b = start("b", Waiting.class);
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch fail = new CountDownLatch(1);
        Future<?> first = threads.submit(() -> a.getBean(WaitingJob.class).migrate(() -> {
            running.countDown();
            awaitQuietly(fail);
            throw new IllegalStateException("on purpose");
        }));
        assertThat(running.await(10, TimeUnit.SECONDS)).isTrue();
        Future<?> second = threads.submit(() -> b.getBean(WaitingJob.class).migrate(nothing()));
        Future<?> third = threads.submit(() -> a.getBean(WaitingJob.class).migrate(nothing()));
        fail.countDown();
        assertThatThrownBy(() -> first.get(5, TimeUnit.SECONDS)).hasStackTraceContaining("on purpose");
        second.get(10, TimeUnit.SECONDS);
        third.get(10, TimeUnit.SECONDS);
        assertThat(runs("migrate")).isEqualTo(1);
    }

    @Test
    void oneOfThoseWhoWaitTakesOverWhenTheRunnersProcessIsKilled() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Doomed.class.getName(),
                        database.url(),
                        database.username(),
                        database.password())
                .redirectErrorStream(true)
                .start();
        try (BufferedReader output =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            CompletableFuture<Boolean> runs =
                    CompletableFuture.supplyAsync(() -> output.lines().anyMatch("RUNNING"::equals), threads);
            assertThat(runs.get(60, TimeUnit.SECONDS)).isTrue();
            ConfigurableApplicationContext b = start("b", Waiting.class);
            ConfigurableApplicationContext c = start("c", Waiting.class);
            List<Future<?>> waiting = List.of(
                    threads.submit(() -> b.getBean(WaitingJob.class).migrate(nothing())),
                    threads.submit(() -> c.getBean(WaitingJob.class).migrate(nothing())));
            await().during(Duration.ofMillis(500))
                    .atMost(Duration.ofSeconds(2))
                    .until(() -> waiting.stream().noneMatch(Future::isDone));
            process.destroyForcibly();
            for (Future<?> one : waiting) {
                one.get(10, TimeUnit.SECONDS);
            }
            assertThat(runs("migrate")).isEqualTo(1);
        } finally {
            process.destroyForcibly();
        }
    }

    /** A replica in a process of its own that never ends its work. */
    static final class Doomed {

        private Doomed() {}

        public static void main(String[] arguments) {
            ConfigurableApplicationContext context = new SpringApplicationBuilder(Waiting.class)
                    .web(WebApplicationType.NONE)
                    .properties(
                            "spring.application.name=orders",
                            "pglock.instance-id=doomed",
                            "pglock.lease-duration=2s",
                            "spring.flyway.enabled=false",
                            "spring.datasource.url=" + arguments[0],
                            "spring.datasource.username=" + arguments[1],
                            "spring.datasource.password=" + arguments[2])
                    .run();
            context.getBean(WaitingJob.class).migrate(() -> {
                System.out.println("RUNNING");
                awaitQuietly(new CountDownLatch(1));
            });
        }
    }

    // ---- re-entry

    static class Nesting extends Application {

        @Bean
        OuterJob outerJob(InnerJob inner) {
            return new OuterJob(inner);
        }

        @Bean
        InnerJob innerJob(JdbcTemplate jdbc) {
            return new InnerJob(new Recorder(jdbc, "nested"));
        }
    }

    static class OuterJob {

        private final InnerJob inner;

        OuterJob(InnerJob inner) {
            this.inner = inner;
        }

        @RunOnce("nested")
        public void outer(Runnable between) {
            long fence = LockContext.current().fence();
            inner.inner();
            assertThat(LockContext.requireHeld("nested").fence()).isEqualTo(fence);
            between.run();
            inner.inner();
        }
    }

    static class InnerJob {

        private final Recorder recorder;

        InnerJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @RunOnce("nested")
        public void inner() {
            recorder.run("inner", 0);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory"})
    void aLockEnteredAgainByItsThreadIsFreeOnlyAfterTheOuterCallAndOthersStayOut(String strategy) throws Exception {
        ConfigurableApplicationContext a = start("a", Nesting.class, "pglock.strategy=" + strategy);
        ConfigurableApplicationContext b = start("b", Nesting.class, "pglock.strategy=" + strategy);
        CountDownLatch between = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        Future<?> outer = threads.submit(() -> a.getBean(OuterJob.class).outer(() -> {
            between.countDown();
            awaitQuietly(goOn);
        }));
        assertThat(between.await(10, TimeUnit.SECONDS)).isTrue();
        assertThat(runs("inner")).isEqualTo(1);
        a.getBean(InnerJob.class).inner();
        b.getBean(InnerJob.class).inner();
        assertThat(runs("inner")).as("another thread, another replica: skipped").isEqualTo(1);
        goOn.countDown();
        outer.get(10, TimeUnit.SECONDS);
        assertThat(runs("inner")).isEqualTo(2);
        b.getBean(InnerJob.class).inner();
        assertThat(runs("inner")).isEqualTo(3);
    }

    // ---- advisory locks remember in the table, or not at all

    @Test
    void aVersionThatNothingWouldRememberIsRefusedAtStartUp() {
        assertThatThrownBy(() -> start("a", Waiting.class, "pglock.strategy=advisory"))
                .satisfies(e -> assertThat(Analyses.of(e).getDescription())
                        .contains("migrate", "WaitingJob", "version", "no lease table"))
                .satisfies(e -> assertThat(Analyses.of(e).getAction()).contains("schema.sql", "Strategy.LEASE"));
    }

    @Test
    void whereItIsOnlyWarnedOfItIsRefusedByTheCall(CapturedOutput output) {
        ConfigurableApplicationContext a =
                start("a", Waiting.class, "pglock.strategy=advisory", "pglock.verification=warn");
        assertThat(output).contains("no lease table");
        assertThatThrownBy(() -> a.getBean(WaitingJob.class).migrate(nothing()))
                .hasMessageContaining("version")
                .hasMessageContaining("schema.sql");
    }

    static class WaitingByLease extends Application {

        @Bean
        LeaseJob leaseJob(JdbcTemplate jdbc) {
            return new LeaseJob(new Recorder(jdbc, "any"));
        }
    }

    static class LeaseJob {

        private final Recorder recorder;

        LeaseJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @RunOnce(name = "migrate", version = "7", strategy = Strategy.LEASE)
        public void migrate() {
            recorder.run("migrate", 0);
        }
    }

    @Test
    void oneVersionedLockMayUseTheLeaseWhereTheRestIsAdvisory() {
        String[] properties = {
            "pglock.strategy=advisory", "pglock.locks[0].name=migrate", "pglock.locks[0].strategy=lease"
        };
        for (int i = 0; i < 2; i++) {
            start("a", WaitingByLease.class, properties).getBean(LeaseJob.class).migrate();
        }
        assertThat(runs("migrate")).isEqualTo(1);
    }

    @Test
    void anAdvisoryLockRemembersItsVersionWhereTheTableExists() {
        start("creates-the-table", Waiting.class);
        for (int i = 0; i < 2; i++) {
            start("a", Waiting.class, "pglock.strategy=advisory")
                    .getBean(WaitingJob.class)
                    .migrate(nothing());
        }
        assertThat(runs("migrate")).isEqualTo(1);
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
