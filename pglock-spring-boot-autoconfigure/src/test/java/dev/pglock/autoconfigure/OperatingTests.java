package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.actuate.PgLockEndpoint;
import dev.pglock.event.LockLostEvent;
import dev.pglock.event.LockOutageBeganEvent;
import dev.pglock.event.LockOutageEndedEvent;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.TcpProxy;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.actuate.endpoint.InvalidEndpointRequestException;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.Order;
import org.springframework.scheduling.annotation.Scheduled;

/** What the one on call does to two replicas, and what they tell. */
@Tag("long")
class OperatingTests extends TwoReplicas {

    private static final String EXPOSED = "management.endpoints.web.exposure.include=pglock";
    private static final String JOB = "TickingJob.tick";

    private static PgLockEndpoint endpoint(ConfigurableApplicationContext replica) {
        return replica.getBean(PgLockEndpoint.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory"})
    void aPauseStopsTheTicksOfBothReplicasAtOnceAndAResumeLetsThemGoOn(String strategy) {
        ConfigurableApplicationContext a = start("a", Ticking.class, EXPOSED, "pglock.strategy=lease");
        start("b", Ticking.class, EXPOSED, "pglock.strategy=" + strategy);
        await().until(() -> runs("tick") > 3);

        assertThat(endpoint(a).act(SecurityContext.NONE, "pause", "moving house", JOB))
                .isEqualTo(new PgLockEndpoint.Done(JOB, "pause", true));
        // The run under way ends; it is 30 ms long, and a tick comes every 50 ms.
        await().until(() -> endpoint(a).lock(JOB).state() == LockState.PAUSED);
        long before = runs("tick");
        await().pollDelay(Duration.ofMillis(500)).until(() -> true);
        assertThat(runs("tick")).isLessThanOrEqualTo(before + 1);
        assertThat(endpoint(a).lock(JOB).paused()).isEqualTo("moving house");

        endpoint(a).act(SecurityContext.NONE, "resume", "moved", JOB);
        await().until(() -> runs("tick") > before + 3);
        assertThat(overlaps("tick")).isZero();
    }

    @Test
    void theEndpointTellsOfEachLockWhoHoldsItAndWhatItIsDue() {
        ConfigurableApplicationContext a = start("a", Ticking.class, EXPOSED);
        await().until(() -> runs("tick") > 1);
        LockHandle lock = a.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of("a/b").data("half"))
                .orElseThrow();

        Instant until = lock.expiresAt();
        PgLockEndpoint.Lock held = endpoint(a).lock("a", "b");
        assertThat(held.name()).isEqualTo("a/b");
        assertThat(held.strategy()).isEqualTo(LockStrategy.LEASE);
        assertThat(held.state()).isEqualTo(LockState.HELD);
        assertThat(held.holder()).isEqualTo("a");
        assertThat(held.fence()).isEqualTo(lock.fence());
        assertThat(held.since()).isEqualTo(lock.acquiredAt());
        assertThat(held.until()).isAfterOrEqualTo(until);
        assertThat(held.data()).isEqualTo("half");
        assertThat(endpoint(a).lock("never seen")).isNull();

        await().untilAsserted(() -> {
            PgLockEndpoint.Lock job = endpoint(a).locks().locks().stream()
                    .filter(one -> one.name().equals(JOB))
                    .findFirst()
                    .orElseThrow();
            assertThat(job.nextDue()).isNotNull().isBefore(Instant.now().plusSeconds(1));
            assertThat(job.lastRun()).isNotNull();
            assertThat(job.lastRun().outcome()).isEqualTo(RunOutcome.SUCCEEDED);
            assertThat(job.lastRun().holder()).isEqualTo("a");
            assertThat(job.lastRun().took()).isBetween(Duration.ofMillis(20), Duration.ofSeconds(5));
        });
        lock.close();
    }

    @Test
    void theEndpointTellsWhatTheConfigurationPauses() {
        ConfigurableApplicationContext a =
                start("a", Application.class, EXPOSED, "pglock.locks[0].name=off", "pglock.locks[0].mode=paused");
        ConfigurableApplicationContext b = start("b", Application.class, EXPOSED);
        b.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of("off"))
                .orElseThrow()
                .close();

        assertThat(endpoint(a).lock("off").paused()).contains("on this replica", "mode: paused");
        assertThat(endpoint(a).lock("off").state()).isEqualTo(LockState.FREE);
        assertThat(endpoint(a).locks().locks())
                .extracting(PgLockEndpoint.Lock::paused)
                .doesNotContainNull();
        assertThat(endpoint(b).lock("off").paused()).isNull();

        endpoint(b).act(SecurityContext.NONE, "pause", "ticket 7", "off");
        assertThat(endpoint(a).lock("off").paused()).isEqualTo("ticket 7");
    }

    @Test
    void theEndpointTellsWhoWaits() throws Exception {
        ConfigurableApplicationContext a = start("a", Application.class, EXPOSED);
        ConfigurableApplicationContext b = start("b", Application.class);
        LockHandle lock =
                a.getBean(LockRegistry.class).tryAcquire(LockRequest.of("turn")).orElseThrow();
        ExecutorService threads = Executors.newSingleThreadExecutor();
        try {
            Future<LockHandle> waits =
                    threads.submit(() -> b.getBean(LockRegistry.class).acquire(LockRequest.of("turn")));
            await().untilAsserted(
                            () -> assertThat(endpoint(a).lock("turn").waiting()).containsExactly("b"));
            lock.close();
            waits.get(3, TimeUnit.SECONDS).close();
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void aForcedReleaseMovesTheJobAndTheOldHolderIsTold() throws Exception {
        ConfigurableApplicationContext a = start("a", Listening.class, EXPOSED);
        ConfigurableApplicationContext b = start("b", Listening.class, EXPOSED);
        CountDownLatch interrupted = new CountDownLatch(1);
        ExecutorService threads = Executors.newSingleThreadExecutor();
        try {
            LockHandle lock = a.getBean(LockRegistry.class)
                    .tryAcquire(LockRequest.of("job"))
                    .orElseThrow();
            Future<?> body = threads.submit(() -> lock.execute(() -> {
                try {
                    Thread.sleep(30_000);
                } catch (InterruptedException e) {
                    interrupted.countDown();
                }
                return null;
            }));
            await().until(() -> !body.isDone());

            assertThat(endpoint(b).forceRelease(SecurityContext.NONE, "hangs, ticket 4711", null, "job"))
                    .isEqualTo(new PgLockEndpoint.Done("job", "force-release", true));
            assertThat(interrupted.await(3, TimeUnit.SECONDS)).isTrue();
            body.get(3, TimeUnit.SECONDS);
            assertThat(lock.isHeld()).isFalse();
            LockHandle next =
                    b.getBean(LockRegistry.class).acquire(LockRequest.of("job").waitTimeout(Duration.ofSeconds(5)));
            assertThat(next.fence()).isGreaterThan(lock.fence());
            next.close();
            await().untilAsserted(() -> assertThat(a.getBean(Listening.class).events)
                    .containsExactly(
                            new LockLostEvent("job", LockStrategy.LEASE, lock.fence(), LossReason.TAKEN, "a")));
            assertThat(b.getBean(Listening.class).events).isEmpty();
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void whatCannotBeDoneAsItWasAskedForIsABadRequestThatSaysHow() {
        ConfigurableApplicationContext a = start("a", Application.class, EXPOSED, "pglock.strategy=advisory");
        LockHandle lock =
                a.getBean(LockRegistry.class).tryAcquire(LockRequest.of("job")).orElseThrow();
        PgLockEndpoint endpoint = endpoint(a);
        assertThatExceptionOfType(InvalidEndpointRequestException.class)
                .isThrownBy(() -> endpoint.forceRelease(SecurityContext.NONE, "why not", null, "job"))
                .withMessageContaining("at once (now)");
        assertThatExceptionOfType(InvalidEndpointRequestException.class)
                .isThrownBy(() -> endpoint.act(SecurityContext.NONE, "stop", "why not", "job"))
                .withMessageContaining("'stop'");
        assertThatExceptionOfType(InvalidEndpointRequestException.class)
                .isThrownBy(() -> endpoint.act(SecurityContext.NONE, "pause", " ", "job"));
        for (String none : List.of(" ", "x".repeat(256))) {
            assertThatExceptionOfType(InvalidEndpointRequestException.class)
                    .isThrownBy(() -> endpoint.act(SecurityContext.NONE, "resume", "why not", none));
            assertThatExceptionOfType(InvalidEndpointRequestException.class)
                    .isThrownBy(() -> endpoint.forceRelease(SecurityContext.NONE, "why not", null, none));
            assertThatExceptionOfType(InvalidEndpointRequestException.class).isThrownBy(() -> endpoint.lock(none));
        }
        // There is no table: nothing could remember it.
        for (String action : List.of("pause", "resume")) {
            assertThatExceptionOfType(InvalidEndpointRequestException.class)
                    .isThrownBy(() -> endpoint.act(SecurityContext.NONE, action, "why not", "job"))
                    .withMessageContaining("there is no");
        }
        lock.close();
    }

    @Test
    void anOutageIsToldByEventsAndByAHealthThatIsNeverDown() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext a = start("a", database.url(proxy), Listening.class);
            HealthIndicator health = a.getBean("pglockHealthIndicator", HealthIndicator.class);
            assertThat(health.health().getStatus()).isEqualTo(Status.UP);
            assertThat(a.getBeanFactory().containsSingleton("pgLockRegistry"))
                    .as("health takes no lock, and asks for no registry")
                    .isFalse();
            LockHandle lock = a.getBean(LockRegistry.class)
                    .tryAcquire(LockRequest.of("job"))
                    .orElseThrow();
            Health up = health.health();
            assertThat(up.getStatus()).isEqualTo(Status.UP);
            assertThat(up.getDetails())
                    .containsEntry("strategy", "lease")
                    .containsEntry("namespace", "orders")
                    .containsEntry("replica", "a")
                    .containsKeys("database", "lease", "advisory");
            assertThat(up.getDetails().toString()).doesNotContain("password").doesNotContain("?");

            proxy.refuse();
            await().until(() -> health.health().getStatus().equals(Status.UNKNOWN));
            await().atMost(Duration.ofSeconds(5)).until(() -> !lock.isHeld());
            proxy.resume();
            await().atMost(Duration.ofSeconds(10)).ignoreExceptions().until(() -> {
                a.getBean(LockRegistry.class)
                        .tryAcquire(LockRequest.of("other"))
                        .orElseThrow()
                        .close();
                return true;
            });
            await().untilAsserted(() -> assertThat(a.getBean(Listening.class).events)
                    .extracting(Object::getClass)
                    .satisfies(classes -> assertThat(List.<Object>copyOf(classes))
                            .containsOnlyOnce(LockOutageBeganEvent.class, LockOutageEndedEvent.class)
                            .containsOnlyOnce(LockLostEvent.class)));
            assertThat(health.health().getStatus()).isEqualTo(Status.UP);
        }
    }

    @Test
    void aHundredSkipsAreNoLineAtInfo() throws Exception {
        ConfigurableApplicationContext a = start("a", Counting.class);
        // Waits for it: the job of this replica may have it at this instant.
        LockHandle lock = a.getBean(LockRegistry.class).acquire(LockRequest.of(Counting.LOCK));
        ConfigurableApplicationContext b = start("b", Counting.class);
        await().until(() -> skips(b) > 0);
        try (CapturedLog log = CapturedLog.of("dev.pglock")) {
            double before = skips(b);
            await().atMost(Duration.ofSeconds(30)).until(() -> skips(b) >= before + 100);
            assertThat(log.messages()).isEmpty();
        }
        lock.close();
    }

    private static double skips(ConfigurableApplicationContext replica) {
        return calls(replica, "held");
    }

    private static double calls(ConfigurableApplicationContext replica, String outcome) {
        return replica
                .getBean(MeterRegistry.class)
                .find("pglock.acquire")
                .tags("lock", Counting.LOCK, "outcome", outcome)
                .timers()
                .stream()
                .mapToDouble(Timer::count)
                .sum();
    }

    @Test
    void anOutageOfAHundredTicksIsOneWarningAndOneInfo() throws Exception {
        TcpProxy proxy = TcpProxy.to(database.server());
        // Before the log is captured: a start of Spring Boot begins with the log's configuration.
        ConfigurableApplicationContext a = start("a", database.url(proxy), Counting.class);
        try (proxy;
                CapturedLog log = CapturedLog.of("dev.pglock");
                CapturedLog schedulers = CapturedLog.of("org.springframework.scheduling")) {
            await().until(() -> calls(a, "acquired") > 3);
            proxy.refuse();
            await().atMost(Duration.ofSeconds(60)).until(() -> calls(a, "error") >= 100);
            proxy.resume();
            double before = calls(a, "acquired");
            await().atMost(Duration.ofSeconds(30)).until(() -> calls(a, "acquired") > before + 3);

            await().untilAsserted(() -> assertThat(log.messages())
                    .filteredOn(line -> line.contains("The database of the lease locks"))
                    .satisfiesExactly(
                            line -> assertThat(line).startsWith("WARN The database of the lease locks fails"),
                            line -> assertThat(line).startsWith("INFO The database of the lease locks works again")));
            // The one tick that ran when it began may have lost its lock, or kept it.
            assertThat(log.messages())
                    .filteredOn(line -> line.startsWith("WARN") || line.startsWith("ERROR"))
                    .hasSizeLessThanOrEqualTo(3);
            assertThat(schedulers.messages()).isEmpty();
        }
    }

    static class Counting extends Application {

        static final String LOCK = "CountingJob.tick";

        @Bean
        CountingJob countingJob() {
            return new CountingJob();
        }
    }

    static class CountingJob {

        @Scheduled(fixedDelay = 20)
        void tick() {
            LockContext.requireHeld(Counting.LOCK);
        }
    }

    /** Neither the tenure nor those who are told next notice it. */
    @Test
    void aListenerOfApplicationEventsThatThrowsChangesNothing() {
        ConfigurableApplicationContext a = start("a", Throwing.class, EXPOSED);
        LockRegistry locks = a.getBean(LockRegistry.class);
        try (CapturedLog log = CapturedLog.of("dev.pglock.engine.Listeners")) {
            LockHandle lock = locks.tryAcquire(LockRequest.of("job")).orElseThrow();
            assertThat(locks.forceRelease("job", "the test says so", true)).isTrue();
            await().until(() -> !lock.isHeld());
            await().untilAsserted(
                            () -> assertThat(a.getBean(Throwing.class).losses).containsExactly("job"));
            assertThat(log.messages()).singleElement().asString().startsWith("WARN A lock listener failed");
            lock.close();
            assertThat(locks.runOnce("job", () -> {})).isTrue();
        }
    }

    @org.springframework.context.annotation.Configuration(proxyBeanMethods = false)
    @org.springframework.boot.autoconfigure.EnableAutoConfiguration
    static class Throwing {

        final List<String> losses = new CopyOnWriteArrayList<>();

        @EventListener
        void on(LockLostEvent event) {
            throw new IllegalStateException("a listener that throws changes nothing");
        }

        @Bean
        @Order
        LockListener last() {
            return new LockListener() {
                @Override
                public void lost(LockHandle lock, LossReason reason) {
                    losses.add(lock.name());
                }
            };
        }
    }

    @org.springframework.context.annotation.Configuration(proxyBeanMethods = false)
    @org.springframework.boot.autoconfigure.EnableAutoConfiguration
    static class Listening {

        final List<Object> events = new CopyOnWriteArrayList<>();

        @EventListener({LockLostEvent.class, LockOutageBeganEvent.class, LockOutageEndedEvent.class})
        void on(Object event) {
            events.add(event);
        }
    }
}
