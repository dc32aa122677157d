package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.pglock.LockLostException;
import dev.pglock.LockRegistry;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseTable;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Where commits are fenced, and what is said where they cannot be. */
class FencingTests extends TwoReplicas {

    private static final String MANAGERS = "dev.pglock.transaction.FencedManager";

    /** Asks for the registry, as a program would. */
    static class Program extends Application {

        @Bean
        Object program(LockRegistry registry) {
            return registry.toString();
        }
    }

    private ConfigurableApplicationContext start(String url, String... more) {
        List<String> properties = new ArrayList<>(List.of(
                "pglock.lease-duration=30s",
                "pglock.on-lost=continue",
                "pglock.datasource.url=" + database.url(),
                "pglock.datasource.username=" + database.username(),
                "pglock.datasource.password=" + database.password()));
        properties.addAll(List.of(more));
        return start("a", url, Program.class, properties.toArray(String[]::new));
    }

    private static TransactionTemplate transactions(ConfigurableApplicationContext context) {
        return new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
    }

    /** A transaction that comes too late. */
    private void commitLate(ConfigurableApplicationContext context) {
        JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
        boolean ignored = context.getBean(LockRegistry.class)
                .runOnce(
                        "a",
                        () -> transactions(context).executeWithoutResult(status -> {
                            jdbc.update("UPDATE counter SET value = value + 1");
                            database.execute("UPDATE pglock_lease SET fence = fence + 1");
                        }));
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "required"})
    void inTheDatabaseOfTheLocksCommitsAreFencedWithoutAWord(String fencing) {
        try (CapturedLog log = CapturedLog.of(MANAGERS)) {
            ConfigurableApplicationContext context = start(database.url(), "pglock.fencing=" + fencing);

            assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
            assertThat(database.number("SELECT value FROM counter")).isZero();
            assertThat(log.messages()).isEmpty();
        }
    }

    @Test
    void offMeansThatALateCommitGoesThrough() {
        try (CapturedLog log = CapturedLog.of(MANAGERS)) {
            commitLate(start(database.url(), "pglock.fencing=off"));

            assertThat(database.number("SELECT value FROM counter")).isOne();
            assertThat(log.messages()).isEmpty();
        }
    }

    @Test
    void inACopyOfThatDatabaseTheyAreNotAndOneWarningSaysSo() {
        try (TestDatabase copy = database.server().newDatabase();
                CapturedLog log = CapturedLog.of(MANAGERS)) {
            start(database.url()).close();
            copy.execute(LeaseSchema.ddl(LeaseTable.parse("pglock_lease")));
            copy.execute("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0)");
            ConfigurableApplicationContext context = start(copy.url());

            commitLate(context);
            commitLate(context);
            assertThat(copy.number("SELECT value FROM counter")).isEqualTo(2);
            assertThat(log.messages())
                    .singleElement()
                    .satisfies(message -> assertThat(message)
                            .startsWith("WARN Commits of 'transactionManager' under leases are not fenced"
                                    + " (its connections do not lead to the database of the locks)"));

            FailureAnalysis analysis = Analyses.of(catchThrowable(() -> start(copy.url(), "pglock.fencing=required")));
            assertThat(analysis.getDescription())
                    .isEqualTo(
                            "Commits of 'transactionManager' under leases are required to be fenced, but cannot be: its"
                                    + " connections do not lead to the database of the locks.");
            assertThat(analysis.getAction()).contains("pglock.fencing=auto").contains("FencedResource");
        }
    }

    @Test
    void aRoleThatMayNotReadTheTableIsToldWhatItLacks() {
        start(database.url()).close();
        String role = PostgresServer.shared().newRole();
        database.execute("GRANT SELECT, UPDATE ON counter TO " + role);
        String[] asRole = {"spring.datasource.username=" + role, "spring.datasource.password=" + role};
        String grant = "GRANT SELECT ON \"public\".\"pglock_lease\" TO " + role;
        try (CapturedLog log = CapturedLog.of(MANAGERS)) {
            commitLate(start(database.url(), asRole));

            assertThat(database.number("SELECT value FROM counter")).isOne();
            assertThat(log.messages())
                    .singleElement()
                    .satisfies(message -> assertThat(message).startsWith("WARN").contains(grant));
        }
        String[] required = Stream.concat(Stream.of(asRole), Stream.of("pglock.fencing=required"))
                .toArray(String[]::new);
        assertThat(Analyses.of(catchThrowable(() -> start(database.url(), required)))
                        .getDescription())
                .contains(grant);

        database.execute(grant);
        ConfigurableApplicationContext context = start(database.url(), required);
        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
    }

    @Test
    void aDatabaseThatIsSilentAtStartUpIsAskedAtTheFirstCommit() {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            proxy.stall();
            long before = System.nanoTime();
            ConfigurableApplicationContext context = start(database.url(proxy), "pglock.fencing=required");
            assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(Duration.ofSeconds(15));
            proxy.resume();

            assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
            assertThat(database.number("SELECT value FROM counter")).isZero();
        }
    }

    @Test
    void whatIsFirstLockedLaterIsAskedAtTheFirstCommit() {
        ConfigurableApplicationContext context = start("a", Application.class, "pglock.on-lost=continue");

        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
    }

    @Test
    void withoutLeasesThereIsNothingToFence() {
        for (String strategy : List.of("advisory", "local")) {
            try (CapturedLog log = CapturedLog.of(MANAGERS)) {
                ConfigurableApplicationContext context =
                        start("a", Program.class, "pglock.strategy=" + strategy, "pglock.fencing=required");

                assertThat(context.getBean(LockRegistry.class)
                                .runOnce(
                                        "a",
                                        () -> transactions(context)
                                                .executeWithoutResult(status -> context.getBean(JdbcTemplate.class)
                                                        .update("UPDATE counter SET value = value + 1"))))
                        .isTrue();
                assertThat(log.messages()).isEmpty();
            }
        }
        assertThat(database.number("SELECT value FROM counter")).isEqualTo(2);
    }

    @Test
    void onlyCommitsUnderALockCostMoreThanTheyDidAndThoseTwoRoundTrips() {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext context = start(database.url(proxy));
            LockRegistry registry = context.getBean(LockRegistry.class);
            JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
            TransactionTemplate transactions = transactions(context);
            Runnable work = () ->
                    transactions.executeWithoutResult(status -> jdbc.update("UPDATE counter SET value = value + 1"));
            for (int i = 0; i < 10; i++) {
                assertThat(registry.runOnce("a", work::run)).isTrue();
            }

            long unlocked = roundTrips(proxy, work);
            long locked = roundTrips(
                    proxy, () -> assertThat(registry.runOnce("a", work::run)).isTrue());
            long twice = roundTrips(
                    proxy,
                    () -> assertThat(registry.runOnce(
                                    "a",
                                    () -> assertThat(registry.runOnce("b", work::run))
                                            .isTrue()))
                            .isTrue());
            // BEGIN travels with the first statement.
            assertThat(unlocked).isEqualTo(2);
            assertThat(locked).isEqualTo(unlocked + 2);
            assertThat(twice).isEqualTo(unlocked + 4);
        }
    }

    private static long roundTrips(TcpProxy proxy, Runnable work) {
        long before = proxy.roundTrips();
        work.run();
        return proxy.roundTrips() - before;
    }
}
