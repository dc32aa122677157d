package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.autoconfigure.BothStrategies.Run;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;

/** Replicas whose database cannot be reached for a while. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class OutageTests extends TwoReplicas {

    private static final Duration LEASE = Duration.ofSeconds(2);

    private static final String[] THREADS = {"spring.task.scheduling.pool.size=4"};

    @BeforeEach
    void begin() {
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
    }

    private static long told(CapturedOutput output, String pattern) {
        return output.getAll()
                .lines()
                .filter(Pattern.compile(pattern).asPredicate())
                .count();
    }

    /** One WARN and one INFO. */
    static void assertToldOnce(CapturedOutput output, int replicas) {
        for (String strategy : new String[] {"lease", "advisory"}) {
            String fails = " WARN .* The database of the " + strategy + " locks fails";
            String works = " INFO .* The database of the " + strategy + " locks works again";
            await().untilAsserted(() -> assertThat(told(output, works)).isEqualTo(told(output, fails)));
            assertThat(told(output, fails)).isEqualTo(replicas);
        }
    }

    @Test
    void inABlackHoleBodiesAreInterruptedWithinTheLeaseAndOthersRunAfterwardsNotBefore() {
        BothStrategies.beginWithRunsOf(Duration.ofMinutes(1));
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext a = start("a", database.url(proxy), BothStrategies.class, THREADS);
            for (String job : BothStrategies.JOBS) {
                await().until(() -> !BothStrategies.runs(job, "a").isEmpty());
            }
            start("b", BothStrategies.class, THREADS);
            // A heartbeat or two have gone well by then.
            await().pollDelay(Duration.ofMillis(700)).until(() -> true);

            proxy.stall();
            long stalled = System.nanoTime();

            for (String job : BothStrategies.JOBS) {
                await().atMost(LEASE.plusSeconds(4))
                        .until(() -> !BothStrategies.runs(job, "b").isEmpty());
                Run cutOff = BothStrategies.runs(job, "a").get(0);
                Run next = BothStrategies.runs(job, "b").get(0);
                assertThat(cutOff.interrupted).isTrue();
                long interrupted = Objects.requireNonNull(cutOff.end);
                assertThat(Duration.ofNanos(interrupted - stalled)).isLessThan(LEASE);
                assertThat(next.begin).isGreaterThan(interrupted);
            }

            long closing = System.nanoTime();
            a.close();
            assertThat(Duration.ofNanos(System.nanoTime() - closing)).isLessThan(Duration.ofSeconds(5));
            assertThat(BothStrategies.runs(run -> run.replica.equals("a")))
                    .as("nothing runs there without the database")
                    .hasSize(2);
        }
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
    }

    @Test
    void inABlackHoleAnAttemptEndsWithinTheLeaseAndAStopSoonAfterwards() {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext a = start("a", database.url(proxy), TwoReplicas.Application.class);
            LockRegistry locks = a.getBean(LockRegistry.class);
            LockHandle held = locks.tryAcquire(LockRequest.of("held")).orElseThrow();
            LockRequest advisory = LockRequest.of("advisory").strategy(LockStrategy.ADVISORY);
            locks.tryAcquire(advisory).orElseThrow().close();

            proxy.stall();
            // On connections that it still has, and when it must open others; twice, because the first may be told
            // otherwise.
            for (LockRequest request : List.of(
                    LockRequest.of("free"), advisory, LockRequest.of("free"), advisory, LockRequest.of("free"))) {
                long asked = System.nanoTime();
                assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> locks.tryAcquire(request));
                assertThat(Duration.ofNanos(System.nanoTime() - asked))
                        .as(request.name())
                        .isLessThan(LEASE);
            }
            assertThat(held.isHeld()).isFalse();
            // It has nothing to renew any more, and waits for nobody.
            await().atMost(LEASE)
                    .untilAsserted(() -> assertThat(Thread.getAllStackTraces().entrySet().stream()
                                    .filter(thread -> thread.getKey().getName().equals("pglock-heartbeat")))
                            .allSatisfy(thread -> assertThat(Arrays.toString(thread.getValue()))
                                    .contains("awaitBeat")));

            long closing = System.nanoTime();
            held.close();
            assertThat(Duration.ofNanos(System.nanoTime() - closing))
                    .as("its release")
                    .isLessThan(LEASE);
            a.close();
            assertThat(Duration.ofNanos(System.nanoTime() - closing)).isLessThan(Duration.ofSeconds(5));
        }
    }

    @Test
    void whenAllSessionsAreEndedAndNoneCanBeOpenedForAWhileOneReplicaRunsAgain(CapturedOutput output) {
        BothStrategies.beginWithRunsOf(Duration.ofSeconds(1));
        String role = PostgresServer.shared().newRole();
        database.execute("GRANT CREATE ON SCHEMA public TO " + role);
        startAs(role, "a");
        startAs(role, "b");
        for (String job : BothStrategies.JOBS) {
            await().until(() -> BothStrategies.runs(Run::isRunning).stream().anyMatch(run -> run.job.equals(job)));
        }

        database.execute("ALTER ROLE " + role + " CONNECTION LIMIT 0");
        database.terminate("%");
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
        await().atMost(Duration.ofSeconds(20))
                .until(() -> told(output, "The database of the lease locks fails") == 2
                        && told(output, "The database of the advisory locks fails") == 2);
        database.execute("ALTER ROLE " + role + " CONNECTION LIMIT -1");
        long restored = System.nanoTime();

        BothStrategies.awaitRuns(1, restored);
        for (String job : BothStrategies.JOBS) {
            assertThat(Duration.ofNanos(BothStrategies.runs(run -> run.job.equals(job) && run.begin > restored)
                                    .get(0)
                                    .begin
                            - restored))
                    .isLessThan(LEASE.plusSeconds(1));
        }
        BothStrategies.awaitRuns(20, restored);
        BothStrategies.assertNoOverlapSince(restored);
        assertToldOnce(output, 2);
    }

    private ConfigurableApplicationContext startAs(String role, String replica) {
        return start(
                replica,
                BothStrategies.class,
                THREADS[0],
                "spring.datasource.username=" + role,
                "spring.datasource.password=" + role);
    }

    @Test
    void afterAChangedPasswordTicksGoOnAsSoonAsThePoolKnowsIt(CapturedOutput output) {
        String role = PostgresServer.shared().newRole();
        database.execute("GRANT CREATE ON SCHEMA public TO " + role);
        ConfigurableApplicationContext a = startAs(role, "a");
        BothStrategies.awaitRuns(1, System.nanoTime());

        database.execute("ALTER ROLE " + role + " PASSWORD 'rotated'");
        database.terminate("%");
        await().atMost(Duration.ofSeconds(20))
                .until(() -> told(output, "The database of the lease locks fails") == 1
                        && told(output, "The database of the advisory locks fails") == 1);
        a.getBean(HikariDataSource.class).getHikariConfigMXBean().setCredentials(Credentials.of(role, "rotated"));
        long known = System.nanoTime();

        BothStrategies.awaitRuns(20, known);
        assertToldOnce(output, 1);
        assertThat(output).doesNotContain("rotated");
    }

    @Test
    void whoeverCannotReachTheDatabaseRunsNothingAndTheOthersRunAll() {
        start("a", BothStrategies.class, THREADS);
        ConfigurableApplicationContext b = start(
                "b",
                "jdbc:postgresql://localhost:1/nowhere",
                BothStrategies.class,
                THREADS[0],
                "pglock.lease.initialize-schema=never",
                "spring.datasource.hikari.initialization-fail-timeout=-1");

        assertThat(Thread.getAllStackTraces().keySet())
                .as("nobody waits there for a connection after the start")
                .noneMatch(thread -> thread.getName().equals("pglock-fencing"));
        BothStrategies.awaitRuns(20, System.nanoTime());

        assertThat(BothStrategies.runs(run -> run.replica.equals("b"))).isEmpty();
        await().untilAsserted(() -> assertThat(b.getBean("pglockHealthIndicator", HealthIndicator.class)
                        .health()
                        .getStatus())
                .isEqualTo(Status.UNKNOWN));
        for (String strategy : new String[] {"lease", "advisory"}) {
            String lock = strategy.equals("lease") ? "by lease" : "by advisory lock";
            assertThat(b.getBean(MeterRegistry.class)
                            .get("pglock.acquire")
                            .tags("lock", lock, "strategy", strategy, "outcome", "error")
                            .timer()
                            .count())
                    .isPositive();
        }
    }
}
