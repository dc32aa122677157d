package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.RunOutcome;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.transaction.annotation.Transactional;

/** Two applications on one PostgreSQL, as two replicas of a service; everything is seen through direct connections. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class TwoReplicasTests extends TwoReplicas {

    // ---- scheduled methods

    @Test
    void aScheduledMethodRunsOnOneReplicaAtATimeAndMovesWhenThatStops() {
        ConfigurableApplicationContext a = start("a", Ticking.class);
        start("b", Ticking.class);
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 20);
        a.close();
        long before = database.number("SELECT count(*) FROM runs WHERE replica = 'b'");
        await().atMost(Duration.ofSeconds(10))
                .until(() -> database.number("SELECT count(*) FROM runs WHERE replica = 'b'") > before + 5);
        assertThat(overlaps("tick")).isZero();
    }

    @Test
    void startUpSaysInOneLineWhatIsLockedAndHow(CapturedOutput output) {
        start(
                "a",
                Ticking.class,
                "pglock.locks[0].name=TickingJob.tik",
                "pglock.locks[0].lease-duration=5s",
                "pglock.locks[1].name=TickingJob.tick",
                "pglock.locks[1].mode=paused");
        assertThat(output)
                .containsOnlyOnce(
                        "Locks by lease in table pglock_lease, namespace 'orders', this replica is 'a'; on one"
                                + " replica at a time: TickingJob.tick (paused by configuration); on every replica: none")
                .containsOnlyOnce(
                        "pglock.locks has an entry for 'TickingJob.tik', but no method has a lock of that name")
                .doesNotContain("Failed to introspect");
        assertThat(runs("tick")).isZero();
    }

    @Test
    void configurationThatLocksNothingByMistakeIsNamed(CapturedOutput output) {
        start(
                "a",
                Ticking.class,
                "pglock.scheduled.packages=no.such.place",
                "pglock.scheduled.every-replica=TickingJob.tock");
        assertThat(output)
                .contains("pglock.scheduled.packages has 'no.such.place'")
                .contains("pglock.scheduled.every-replica has 'TickingJob.tock'")
                .contains("on one replica at a time: none; on every replica: TickingJob.tick (configuration)");
    }

    static class Twins extends Application {

        @Bean
        Tenant first() {
            return new Tenant();
        }

        @Bean
        Tenant second() {
            return new Tenant();
        }
    }

    static class Tenant {

        @RunOnce
        public void run() {}
    }

    @Test
    void twoBeansThatShareALockUnintendedAreNamed(CapturedOutput output) {
        start("a", Twins.class);
        assertThat(output).containsOnlyOnce("Tenant.run of the beans 'first' and 'second' has one lock");
    }

    @Test
    void aReplicaUsesTwoConnectionsOfItsOwnAtMost() {
        start("a", Ticking.class);
        await().atMost(Duration.ofSeconds(20)).until(() -> {
            assertThat(database.number(
                            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pglock:orders:a'"))
                    .isLessThanOrEqualTo(2);
            return runs("tick") >= 20;
        });
    }

    // ---- transactions

    static class Accounts extends Application {

        @Bean
        ClassLevelCounter classLevelCounter(JdbcTemplate jdbc) {
            return new ClassLevelCounter(jdbc);
        }

        @Bean
        Counter counter(JdbcTemplate jdbc, LockRegistry registry) {
            return new Counter(jdbc, registry);
        }
    }

    static class Counter {

        private final JdbcTemplate jdbc;
        private final LockRegistry registry;

        Counter(JdbcTemplate jdbc, LockRegistry registry) {
            this.jdbc = jdbc;
            this.registry = registry;
        }

        @Transactional
        @Singleton("counter")
        public void increment() throws InterruptedException {
            int value = jdbc.queryForObject("SELECT value FROM counter", Integer.class);
            Thread.sleep(5);
            jdbc.update("UPDATE counter SET value = ?", value + 1);
        }

        @Transactional
        public void failAfterAcquiring(String other) {
            jdbc.update("INSERT INTO runs (job) VALUES ('marker')");
            LockHandle lock = registry.tryAcquire(LockRequest.of(other)).orElseThrow();
            try {
                throw new IllegalStateException("the transaction fails");
            } finally {
                lock.close();
            }
        }

        @Transactional
        public void acquireLate(String name, CountDownLatch begun, Runnable whileHeld) throws InterruptedException {
            jdbc.queryForObject("SELECT now()::text", String.class);
            begun.countDown();
            await().pollDelay(Duration.ofMillis(2500)).until(() -> true);
            try (LockHandle lock = registry.tryAcquire(LockRequest.of(name)).orElseThrow()) {
                assertThat(lock.isHeld()).isTrue();
                whileHeld.run();
            }
        }
    }

    /** The transaction is declared by the class, the lock by the method. */
    @Transactional
    static class ClassLevelCounter {

        private final JdbcTemplate jdbc;

        ClassLevelCounter(JdbcTemplate jdbc) {
            this.jdbc = jdbc;
        }

        @Singleton("class-level")
        public void increment() {
            int value = jdbc.queryForObject("SELECT value FROM counter", Integer.class);
            jdbc.queryForObject("SELECT pg_sleep(0.005)::text", String.class);
            jdbc.update("UPDATE counter SET value = ?", value + 1);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theLockIsReleasedAfterTheTransactionHasCommitted(boolean byClass) throws Exception {
        ConfigurableApplicationContext a = start("a", Accounts.class);
        ConfigurableApplicationContext b = start("b", Accounts.class);
        var threads = Executors.newFixedThreadPool(4);
        try {
            CompletableFuture<?>[] calls = IntStream.range(0, 60)
                    .mapToObj(i -> CompletableFuture.runAsync(
                            () -> {
                                ConfigurableApplicationContext replica = i % 2 == 0 ? a : b;
                                try {
                                    if (byClass) {
                                        replica.getBean(ClassLevelCounter.class).increment();
                                    } else {
                                        replica.getBean(Counter.class).increment();
                                    }
                                } catch (InterruptedException e) {
                                    throw new IllegalStateException(e);
                                }
                            },
                            threads))
                    .toArray(CompletableFuture[]::new);
            CompletableFuture.allOf(calls).get(60, TimeUnit.SECONDS);
        } finally {
            threads.shutdownNow();
        }
        assertThat(database.number("SELECT value FROM counter")).isEqualTo(60);
    }

    @Test
    void takingALockNeitherJoinsNorCommitsTheCallersTransaction() {
        ConfigurableApplicationContext a = start("a", Accounts.class);
        ConfigurableApplicationContext b = start("b", Accounts.class);
        assertThatThrownBy(() -> a.getBean(Counter.class).failAfterAcquiring("x"))
                .hasMessageContaining("fails");
        assertThat(runs("marker")).isZero();
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE name = 'x' AND holder IS NULL"))
                .isEqualTo(1);
        assertThat(b.getBean(LockRegistry.class).find("x").orElseThrow().state())
                .isEqualTo(LockState.FREE);
    }

    @Test
    void aLockTakenInAnOldTransactionLastsItsWholeLeaseAndIsSeenByOthers() throws Exception {
        ConfigurableApplicationContext a = start("a", Accounts.class);
        ConfigurableApplicationContext b = start("b", Accounts.class);
        a.getBean(Counter.class).acquireLate("late", new CountDownLatch(1), () -> {
            double left = Double.parseDouble(
                    database.text(
                            "SELECT extract(epoch FROM expires_at - clock_timestamp())::text FROM pglock_lease WHERE name = 'late'"));
            assertThat(left).isBetween(0.8, 2.0);
            assertThat(b.getBean(LockRegistry.class).attempt(LockRequest.of("late")))
                    .isInstanceOf(LockAttempt.Denied.class);
        });
    }

    // ---- failures

    static class Failing extends Application {

        @Bean
        FailingJob failingJob(LockRegistry registry) {
            return new FailingJob();
        }
    }

    static class FailingJob {

        @RunOnce("failing")
        public String run(boolean fails, Runnable meanwhile) {
            meanwhile.run();
            if (fails) {
                throw new UnsupportedOperationException("the job's own");
            }
            return "the job's result";
        }
    }

    @Test
    void aBrokenSessionCostsNeitherTheJobsExceptionNorItsResult() {
        ConfigurableApplicationContext a = start("a", Failing.class);
        Runnable terminate = () -> database.terminate("pglock:%");
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> a.getBean(FailingJob.class).run(true, terminate))
                .withMessage("the job's own");
        assertThat(a.getBean(FailingJob.class).run(false, terminate)).isEqualTo("the job's result");
        assertThat(a.getBean(LockRegistry.class).find("failing").orElseThrow().state())
                .isEqualTo(LockState.FREE);
    }

    @Test
    void aReleaseThatFailsIsAWarningBesideTheJobsExceptionOrResult(CapturedOutput output) {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext a = start("a", database.url(proxy), Failing.class);
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> a.getBean(FailingJob.class).run(true, proxy::stall))
                    .withMessage("the job's own")
                    .satisfies(e -> assertThat(e.getSuppressed()).hasOnlyElementsOfType(LockStorageException.class));
            proxy.resume();
            await().atMost(Duration.ofSeconds(10))
                    .untilAsserted(() -> assertThat(a.getBean(FailingJob.class).run(false, () -> {}))
                            .isEqualTo("the job's result"));
            assertThat(a.getBean(FailingJob.class).run(false, proxy::stall)).isEqualTo("the job's result");
            assertThat(output).contains("Lock 'failing'").contains("could not be released");
            proxy.resume();
        }
    }

    static class LongRunning extends Application {

        @Bean
        LongJob longJob(JdbcTemplate jdbc, Environment environment) {
            return new LongJob(new Recorder(jdbc, environment.getProperty("pglock.instance-id")));
        }
    }

    static class LongJob {

        private final Recorder recorder;

        LongJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @Scheduled(fixedDelay = 200)
        public void run() {
            recorder.run("long", 5000);
        }
    }

    @Test
    void aJobThatRunsForLongerThanItsLeaseIsNotJoinedByAnother() {
        start("a", LongRunning.class);
        start("b", LongRunning.class);
        Set<String> expiries = new java.util.HashSet<>();
        await().atMost(Duration.ofSeconds(30))
                .pollInterval(Duration.ofMillis(100))
                .until(() -> {
                    if (database.number("SELECT count(*) FROM pglock_lease") > 0) {
                        expiries.add(
                                database.text("SELECT expires_at::text FROM pglock_lease WHERE name = 'LongJob.run'"));
                    }
                    return runs("long") >= 2;
                });
        assertThat(overlaps("long")).isZero();
        assertThat(expiries).hasSizeGreaterThan(6);
    }

    @Test
    void aServiceWhoseDatabaseIsAwayStartsAndSkipsAndRunsWhenItIsBack(CapturedOutput output) {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            start("c", Ticking.class).close();
            proxy.stall();
            start(
                    "a",
                    database.url(proxy),
                    Ticking.class,
                    "pglock.lease.initialize-schema=never",
                    "spring.datasource.hikari.initialization-fail-timeout=-1");
            long before = runs("tick");
            await().atMost(Duration.ofSeconds(20))
                    .until(() -> output.toString().contains("nothing that needs a lock runs here"));
            assertThat(runs("tick")).isEqualTo(before);
            proxy.resume();
            await().atMost(Duration.ofSeconds(30)).until(() -> runs("tick") > before + 3);
            assertThat(output.toString().split("nothing that needs a lock runs here", -1))
                    .hasSize(2);
            assertThat(output.toString().split("works again after", -1)).hasSize(2);
        }
    }

    @Test
    void aTableThatIsCreatedLaterIsFoundAtTheNextTick(CapturedOutput output) {
        start("a", Ticking.class, "pglock.lease.initialize-schema=never");
        start("b", Ticking.class, "pglock.lease.initialize-schema=never");
        await().atMost(Duration.ofSeconds(20)).until(() -> output.toString().contains("pglock_lease"));
        assertThat(runs("tick")).isZero();
        database.execute(dev.pglock.lease.LeaseSchema.ddl(dev.pglock.lease.LeaseTable.parse("pglock_lease")));
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 5);
        assertThat(overlaps("tick")).isZero();
    }

    @Test
    void whatRanIsRemembered() {
        ConfigurableApplicationContext a = start("a", Failing.class);
        assertThatThrownBy(() -> a.getBean(FailingJob.class).run(true, () -> {}));
        var last = a.getBean(LockRegistry.class).find("failing").orElseThrow().lastRun();
        assertThat(last).isNotNull();
        assertThat(last.outcome()).isEqualTo(RunOutcome.FAILED);
        assertThat(last.error()).isEqualTo(UnsupportedOperationException.class.getName());
        assertThat(last.holder()).isEqualTo("a");
    }

    @Test
    void neitherABlockedRowNorABusySchedulerCostsOtherLocksTheirHeartbeats() throws Exception {
        ConfigurableApplicationContext a = start("a", Application.class, "spring.task.scheduling.pool.size=1");
        LockRegistry registry = a.getBean(LockRegistry.class);
        CountDownLatch busy = new CountDownLatch(1);
        a.getBean(TaskScheduler.class)
                .schedule(
                        () -> {
                            try {
                                busy.await(20, TimeUnit.SECONDS);
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                        },
                        Instant.EPOCH);
        List<LockHandle> locks = IntStream.range(0, 60)
                .mapToObj(i -> registry.tryAcquire(LockRequest.of("lock " + i)).orElseThrow())
                .toList();
        try (Connection direct = database.direct()) {
            direct.setAutoCommit(false);
            TestDatabase.text(direct, "SELECT name FROM pglock_lease WHERE name = 'lock 7' FOR UPDATE");
            await().during(Duration.ofSeconds(4))
                    .atMost(Duration.ofSeconds(10))
                    .until(() -> locks.stream()
                            .filter(lock -> !lock.name().equals("lock 7"))
                            .allMatch(LockHandle::isHeld));
            direct.rollback();
        }
        busy.countDown();
        locks.forEach(LockHandle::close);
    }

    /** The pool looks for idle connections every thirty seconds; here more often. */
    @Test
    void noConnectionIsKeptWhenNothingIsLocked() {
        System.setProperty("com.zaxxer.hikari.housekeeping.periodMs", "500");
        try {
            ConfigurableApplicationContext a = start("a", Failing.class);
            assertThat(a.getBean(FailingJob.class).run(false, () -> {})).isEqualTo("the job's result");
            await().atMost(Duration.ofSeconds(25))
                    .until(() -> database.number(
                                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pglock:%'"
                                            + " AND datname = current_database()")
                            == 0);
        } finally {
            System.clearProperty("com.zaxxer.hikari.housekeeping.periodMs");
        }
    }
}
