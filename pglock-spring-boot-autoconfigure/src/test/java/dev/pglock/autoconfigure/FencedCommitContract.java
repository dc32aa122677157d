package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.annotation.RunOnce;
import dev.pglock.testing.TcpProxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** Transactions under a lease, whatever manages them. The heartbeat is far away, unless a test is about it. */
abstract class FencedCommitContract extends TwoReplicas {

    private static final String[] FAR_HEARTBEAT = {
        "pglock.lease-duration=30s", "pglock.heartbeat-interval=10s", "pglock.on-lost=continue"
    };

    /** Another tenure, as far as the table is concerned; the holder has not heard of it. */
    private static final String LOSE = "UPDATE pglock_lease SET fence = fence + 1 WHERE name = '%s'";

    /** With {@link Jobs}. */
    abstract Class<? extends Application> application();

    static class Jobs extends Application {

        @Bean
        Job job(JdbcTemplate jdbc) {
            return new Job(jdbc);
        }
    }

    static class Job {

        private final JdbcTemplate jdbc;

        Job(JdbcTemplate jdbc) {
            this.jdbc = jdbc;
        }

        @RunOnce("job")
        @Transactional
        public void run(Runnable meanwhile) {
            increment(jdbc);
            meanwhile.run();
        }
    }

    static void increment(JdbcTemplate jdbc) {
        jdbc.update("UPDATE counter SET value = value + 1");
    }

    /** One replica, with what a program would have of it. */
    final class One {

        final ConfigurableApplicationContext context;
        final LockRegistry registry;
        final JdbcTemplate jdbc;
        final TransactionTemplate transaction;

        One(ConfigurableApplicationContext context) {
            this.context = context;
            this.registry = context.getBean(LockRegistry.class);
            this.jdbc = context.getBean(JdbcTemplate.class);
            this.transaction = transaction(TransactionDefinition.PROPAGATION_REQUIRED);
        }

        TransactionTemplate transaction(int propagation) {
            TransactionTemplate template = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
            template.setPropagationBehavior(propagation);
            return template;
        }

        void underLock(String name, Runnable body) {
            assertThat(registry.runOnce(name, body::run)).isTrue();
        }

        void inTransaction(Runnable body) {
            transaction.executeWithoutResult(status -> body.run());
        }

        void increment() {
            FencedCommitContract.increment(jdbc);
        }
    }

    One one(String... properties) {
        return new One(start("a", application(), properties));
    }

    void lose(String name) {
        database.execute(LOSE.formatted(name));
    }

    long counter() {
        return database.number("SELECT value FROM counter");
    }

    @Test
    void aLockedMethodsTransactionIsRolledBackWhenItsTenureHasEnded() {
        Job job = one(FAR_HEARTBEAT).context.getBean(Job.class);

        job.run(() -> {});
        assertThat(counter()).isOne();
        assertThatThrownBy(() -> job.run(() -> lose("job")))
                .isInstanceOf(LockLostException.class)
                .hasMessageContaining("before the commit, which is rolled back");
        assertThat(counter()).isOne();
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "DEFAULT")
    void atEveryIsolationLevel(Isolation isolation) {
        One one = one(FAR_HEARTBEAT);
        one.transaction.setIsolationLevel(isolation.value());

        one.underLock("held", () -> one.inTransaction(one::increment));
        assertThat(counter()).isOne();
        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> one.underLock(
                        "lost",
                        () -> one.inTransaction(() -> {
                            one.increment();
                            lose("lost");
                        })));
        assertThat(counter()).isOne();
    }

    @Test
    void aLeaseThatHasExpiredIsNoneAlthoughNobodyElseHasTakenIt() {
        One one = one(FAR_HEARTBEAT);

        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> one.underLock(
                        "a",
                        () -> one.inTransaction(() -> {
                            one.increment();
                            database.execute("UPDATE pglock_lease SET acquired_at = clock_timestamp() - interval '1 s',"
                                    + " expires_at = clock_timestamp()");
                        })));
        assertThat(counter()).isZero();
    }

    @Test
    void everyLockOfTheThreadCounts() {
        One one = one(FAR_HEARTBEAT);

        one.underLock(
                "outer",
                () -> assertThatExceptionOfType(LockLostException.class)
                        .isThrownBy(() -> one.underLock(
                                "inner",
                                () -> one.inTransaction(() -> {
                                    one.increment();
                                    lose("outer");
                                })))
                        .satisfies(lost -> assertThat(lost.lockName()).isEqualTo("outer")));
        assertThat(counter()).isZero();
    }

    @Test
    void aTransactionOfItsOwnIsFencedByItself() {
        One one = one(FAR_HEARTBEAT);
        TransactionTemplate requiresNew = one.transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW);

        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> one.underLock(
                        "a",
                        () -> one.inTransaction(() -> {
                            requiresNew.executeWithoutResult(status -> one.increment());
                            lose("a");
                            assertThatExceptionOfType(LockLostException.class)
                                    .isThrownBy(() -> requiresNew.executeWithoutResult(status -> one.increment()));
                        })));
        assertThat(counter()).isOne();
    }

    @Test
    void aTransactionThatTakesPartCommitsNothingAndIsNotChecked() {
        One one = one(FAR_HEARTBEAT);

        one.underLock(
                "a",
                () -> one.inTransaction(() -> {
                    one.increment();
                    lose("a");
                    assertThatCode(() -> one.inTransaction(one::increment)).doesNotThrowAnyException();
                    database.execute("UPDATE pglock_lease SET fence = fence - 1");
                }));
        assertThat(counter()).isEqualTo(2);
    }

    @Test
    void aTransactionThatOnlyReadsAndOneThatIsRolledBackAreLeftAlone() {
        One one = one(FAR_HEARTBEAT);
        TransactionTemplate reading = one.transaction(TransactionDefinition.PROPAGATION_REQUIRED);
        reading.setReadOnly(true);

        one.underLock("a", () -> {
            lose("a");
            Integer value =
                    reading.execute(status -> one.jdbc.queryForObject("SELECT value FROM counter", Integer.class));
            assertThat(value).isZero();
            one.transaction.executeWithoutResult(status -> {
                one.increment();
                status.setRollbackOnly();
            });
            assertThatExceptionOfType(UnexpectedRollbackException.class)
                    .isThrownBy(() -> one.inTransaction(() -> {
                        one.increment();
                        one.transaction.executeWithoutResult(inner -> inner.setRollbackOnly());
                    }));
        });
        assertThat(counter()).isZero();
    }

    /** A limit: the lock is to be outermost. */
    @Test
    void aTransactionThatBeganBeforeTheLockCommitsAfterItsReleaseAndIsNotFenced() {
        One one = one(FAR_HEARTBEAT);

        one.inTransaction(() -> one.underLock("a", () -> {
            one.increment();
            lose("a");
        }));
        assertThat(counter()).isOne();
    }

    @Test
    void aTransactionThatHasFailedAlreadyEndsAsItWouldWithoutALock() {
        One one = one(FAR_HEARTBEAT);

        Runnable failing = () -> one.inTransaction(() -> {
            one.increment();
            assertThatExceptionOfType(DataAccessException.class).isThrownBy(() -> one.jdbc.execute("SELECT 1 / 0"));
        });

        Throwable without = catchThrowable(failing::run);
        Throwable with = catchThrowable(() -> one.underLock("a", failing));
        assertThat(with == null ? null : with.getClass()).isEqualTo(without == null ? null : without.getClass());
        assertThat(counter()).isZero();
    }

    @Test
    void whileSomebodyElseHasTheKeyNothingIsCommitted() throws SQLException {
        One one = one(FAR_HEARTBEAT);
        try (Connection other = database.direct();
                Statement statement = other.createStatement()) {
            Runnable work = () -> one.inTransaction(() -> {
                one.increment();
                takeKey(statement);
            });

            assertThatExceptionOfType(LockStorageException.class).isThrownBy(() -> one.underLock("a", work));
            statement.execute("SELECT pg_advisory_unlock_all()");
            assertThatExceptionOfType(LockLostException.class)
                    .isThrownBy(() -> one.underLock("a", () -> {
                        lose("a");
                        work.run();
                    }));
        }
        assertThat(counter()).isZero();
    }

    private static void takeKey(Statement statement) {
        long key = LockContext.current().key();
        try {
            statement.execute("SELECT pg_advisory_lock(" + key + ")");
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The commit hangs in a deferred trigger until the test lets it go. */
    private Connection hangingCommits() throws SQLException {
        database.execute("""
                CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS
                  $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;
                CREATE CONSTRAINT TRIGGER hang AFTER UPDATE ON counter DEFERRABLE INITIALLY DEFERRED
                  FOR EACH ROW EXECUTE FUNCTION hang()""");
        Connection gate = database.direct();
        try (Statement statement = gate.createStatement()) {
            statement.execute("SELECT pg_advisory_lock(4711)");
        }
        return gate;
    }

    private void awaitCommitUnderWay() {
        await().atMost(Duration.ofSeconds(10))
                .until(
                        () -> database.isTrue(
                                "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted)"));
    }

    @Test
    void whileACommitIsUnderWayHeartbeatsGoOn() throws Exception {
        One one = one();
        try (Connection gate = hangingCommits()) {
            CompletableFuture<Void> job =
                    CompletableFuture.runAsync(() -> one.underLock("a", () -> one.inTransaction(one::increment)));
            awaitCommitUnderWay();
            for (int i = 0; i < 3; i++) {
                String expiry = database.text("SELECT expires_at FROM pglock_lease");
                await().atMost(Duration.ofSeconds(2))
                        .until(() -> database.isTrue("SELECT expires_at > ?::timestamptz FROM pglock_lease", expiry));
            }
            gate.close();
            job.get();
        }
        assertThat(counter()).isOne();
    }

    @Test
    void whileACommitIsUnderWayNobodyElseIsGrantedTheLockEvenIfTheLeaseEnds() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server());
                Connection gate = hangingCommits()) {
            One one = one(
                    "pglock.datasource.url=" + database.url(proxy),
                    "pglock.datasource.username=" + database.username(),
                    "pglock.datasource.password=" + database.password(),
                    "pglock.on-lost=continue");
            LockRegistry other = start("b", application()).getBean(LockRegistry.class);
            CompletableFuture<Void> job = CompletableFuture.runAsync(() -> one.underLock("a", () -> {
                one.inTransaction(one::increment);
            }));
            awaitCommitUnderWay();
            proxy.stall();
            await().atMost(Duration.ofSeconds(10))
                    .until(() -> database.isTrue("SELECT expires_at < clock_timestamp() FROM pglock_lease"));
            for (int i = 0; i < 20; i++) {
                assertThat(other.tryAcquire(LockRequest.of("a"))).isEmpty();
            }
            assertThat(counter()).isZero();
            gate.close();
            await().atMost(Duration.ofSeconds(5)).until(() -> counter() == 1);
            try (LockHandle next = other.acquire(LockRequest.of("a"))) {
                assertThat(next.isHeld()).isTrue();
            }
            proxy.resume();
            job.get();
        }
    }

    @Test
    void aRowThatAHeartbeatHasLockedDelaysNoCommit() throws SQLException {
        One one = one(FAR_HEARTBEAT);
        try (Connection heartbeat = database.direct();
                Statement statement = heartbeat.createStatement()) {
            heartbeat.setAutoCommit(false);
            one.underLock("a", () -> {
                renew(statement);
                one.inTransaction(one::increment);
                // It has not ended yet.
                assertThat(counter()).isOne();
                rollBack(heartbeat);
            });
        }
    }

    private static void renew(Statement statement) {
        try {
            statement.execute("UPDATE pglock_lease SET expires_at = expires_at");
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void rollBack(Connection connection) {
        try {
            connection.rollback();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Two replicas read, wait and write. Their heartbeats are held up at random, and now and then a lease is ended behind
     * its holder's back, so that many of them come to their commit too late.
     */
    @Test
    void noUpdateIsLostWhoeverComesTooLate() throws Exception {
        Duration time = Duration.ofSeconds(6);
        AtomicInteger commits = new AtomicInteger();
        AtomicInteger refusals = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        CountDownLatch ended = new CountDownLatch(2);
        try (TcpProxy first = TcpProxy.to(database.server());
                TcpProxy second = TcpProxy.to(database.server())) {
            List<TcpProxy> proxies = List.of(first, second);
            for (TcpProxy proxy : proxies) {
                One one = new One(start(
                        "replica-" + proxy.port(),
                        application(),
                        "pglock.datasource.url=" + database.url(proxy),
                        "pglock.datasource.username=" + database.username(),
                        "pglock.datasource.password=" + database.password(),
                        "pglock.lease-duration=600ms",
                        "pglock.heartbeat-interval=150ms",
                        "pglock.on-lost=continue"));
                new Thread(
                                () -> {
                                    try {
                                        while (!over.get()) {
                                            incrementSlowly(one, commits, refusals);
                                        }
                                    } finally {
                                        ended.countDown();
                                    }
                                },
                                "job")
                        .start();
            }
            long end = System.nanoTime() + time.toNanos();
            ThreadLocalRandom random = ThreadLocalRandom.current();
            while (System.nanoTime() < end) {
                TcpProxy proxy = proxies.get(random.nextInt(2));
                proxy.stall();
                LockSupport.parkNanos(random.nextLong(900_000_000));
                proxy.resume();
                LockSupport.parkNanos(random.nextLong(300_000_000));
                database.execute("UPDATE pglock_lease SET expires_at = greatest(clock_timestamp(),"
                        + " acquired_at + interval '1 ms') WHERE holder IS NOT NULL");
            }
            over.set(true);
            ended.await();
        }
        System.out.println(commits + " commits, " + counter() + " counted, " + refusals + " refused");
        assertThat(commits).hasPositiveValue();
        assertThat(refusals).hasPositiveValue();
        assertThat(counter()).isEqualTo(commits.get());
    }

    private void incrementSlowly(One one, AtomicInteger commits, AtomicInteger refusals) {
        try {
            one.registry.runOnce("counter", () -> {
                one.inTransaction(() -> {
                    Integer value = one.jdbc.queryForObject("SELECT value FROM counter", Integer.class);
                    LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(400_000_000));
                    one.jdbc.update("UPDATE counter SET value = ?", value + 1);
                });
                commits.incrementAndGet();
            });
        } catch (LockLostException e) {
            refusals.incrementAndGet();
        } catch (LockStorageException e) {
            // The network is as it is.
        }
    }
}
