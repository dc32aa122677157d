package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.pglock.LockLostException;
import dev.pglock.LockRegistry;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Strategy;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseTable;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.hibernate.SessionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.Environment;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.orm.jpa.hibernate.HibernateTransactionManager;
import org.springframework.orm.jpa.hibernate.LocalSessionFactoryBean;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;

/** Where commits are fenced, and what is said where they cannot be. */
@ExtendWith(OutputCaptureExtension.class)
class FencingTests extends TwoReplicas {

    private static final String WARNING = "under leases are not fenced";

    private final AtomicInteger names = new AtomicInteger();

    /** Asks for the registry, as a program would. */
    static class Program extends Application {

        @Bean
        Object program(LockRegistry registry) {
            return registry.toString();
        }
    }

    private ConfigurableApplicationContext start(String url, String... more) {
        return startOn(url, Program.class, more);
    }

    private ConfigurableApplicationContext startOn(String url, Class<?> program, String... more) {
        List<String> properties = new ArrayList<>(List.of(
                "pglock.lease-duration=30s",
                "pglock.on-lost=continue",
                "pglock.datasource.url=" + database.url(),
                "pglock.datasource.username=" + database.username(),
                "pglock.datasource.password=" + database.password()));
        properties.addAll(List.of(more));
        return start("a", url, program, properties.toArray(String[]::new));
    }

    private static TransactionTemplate transactions(ConfigurableApplicationContext context) {
        return new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
    }

    /** A transaction that comes too late. */
    private void commitLate(ConfigurableApplicationContext context) {
        commitLate(context, transactions(context));
    }

    private void commitLate(ConfigurableApplicationContext context, TransactionTemplate transactions) {
        JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
        // A name that nobody has had: the row of a tenure that was ended behind its holder's back stays taken.
        String name = "late " + names.incrementAndGet();
        boolean run = context.getBean(LockRegistry.class)
                .runOnce(
                        name,
                        () -> transactions.executeWithoutResult(status -> {
                            jdbc.update("UPDATE counter SET value = value + 1");
                            database.execute("UPDATE pglock_lease SET fence = fence + 1 WHERE name = '" + name + "'");
                        }));
        assertThat(run).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "required"})
    void inTheDatabaseOfTheLocksCommitsAreFencedWithoutAWord(String fencing, CapturedOutput output) {
        ConfigurableApplicationContext context = start(database.url(), "pglock.fencing=" + fencing);

        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
        assertThat(database.number("SELECT value FROM counter")).isZero();
        assertThat(output).doesNotContain(WARNING);
    }

    @Test
    void offMeansThatALateCommitGoesThrough(CapturedOutput output) {
        commitLate(start(database.url(), "pglock.fencing=off"));

        assertThat(database.number("SELECT value FROM counter")).isOne();
        assertThat(output).doesNotContain(WARNING);
    }

    @Test
    void inACopyOfThatDatabaseTheyAreNotAndOneWarningSaysSo(CapturedOutput output) {
        try (TestDatabase copy = database.server().newDatabase()) {
            start(database.url()).close();
            copy.execute(LeaseSchema.ddl(LeaseTable.parse("pglock_lease")));
            copy.execute("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0)");
            ConfigurableApplicationContext context = start(copy.url());
            assertThat(output)
                    .contains("WARN")
                    .contains(
                            "Commits of 'transactionManager' under leases are not fenced (its connections do not lead to"
                                    + " the database of the locks)");

            commitLate(context);
            commitLate(context);
            assertThat(copy.number("SELECT value FROM counter")).isEqualTo(2);
            assertThat(output.getAll().split(WARNING, -1)).hasSize(2);

            FailureAnalysis analysis = Analyses.of(catchThrowable(() -> start(copy.url(), "pglock.fencing=required")));
            assertThat(analysis.getDescription())
                    .isEqualTo(
                            "Commits of 'transactionManager' under leases are required to be fenced, but cannot be: its"
                                    + " connections do not lead to the database of the locks.");
            assertThat(analysis.getAction()).contains("pglock.fencing=auto").contains("FencedResource");
        }
    }

    @Test
    void aRoleThatMayNotReadTheTableIsToldWhatItLacks(CapturedOutput output) {
        start(database.url()).close();
        String role = PostgresServer.shared().newRole();
        database.execute("GRANT SELECT, UPDATE ON counter TO " + role);
        String[] asRole = {"spring.datasource.username=" + role, "spring.datasource.password=" + role};
        String grant = "GRANT SELECT ON \"public\".\"pglock_lease\" TO " + role;

        commitLate(start(database.url(), asRole));
        assertThat(database.number("SELECT value FROM counter")).isOne();
        assertThat(output).contains(WARNING).contains(grant);

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

    @ParameterizedTest
    @ValueSource(strings = {"advisory", "local"})
    void withoutLeasesThereIsNothingToFence(String strategy, CapturedOutput output) {
        ConfigurableApplicationContext context =
                start("a", Program.class, "pglock.strategy=" + strategy, "pglock.fencing=required");

        boolean run = context.getBean(LockRegistry.class).runOnce("a", work(context)::run);
        assertThat(run).isTrue();
        assertThat(database.number("SELECT value FROM counter")).isOne();
        assertThat(output).doesNotContain(WARNING);
    }

    @Test
    void requiredMeansThatThereIsATransactionManager() {
        Throwable failure = catchThrowable(() -> start(
                database.url(),
                "pglock.fencing=required",
                "spring.autoconfigure.exclude=" + DataSourceTransactionManagerAutoConfiguration.class.getName()));

        assertThat(Analyses.of(failure).getDescription()).contains("there is no transaction manager of a DataSource");
    }

    static class LeaseOfAMethod extends Program {

        @RunOnce(name = "by-lease", strategy = Strategy.LEASE)
        public void byLease() {}
    }

    @Test
    void theLeaseOfASingleMethodIsEnoughToRequireIt() {
        Throwable failure = catchThrowable(() -> startOn(
                database.url(),
                LeaseOfAMethod.class,
                "pglock.strategy=advisory",
                "pglock.fencing=required",
                "spring.autoconfigure.exclude=" + DataSourceTransactionManagerAutoConfiguration.class.getName()));

        assertThat(Analyses.of(failure).getDescription()).contains("there is no transaction manager of a DataSource");
    }

    /** Beside that of the DataSource. */
    abstract static class TwoManagers extends Program {

        @Bean
        @Primary
        PlatformTransactionManager transactionManager(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }
    }

    static class WithOwnManager extends TwoManagers {

        @Bean
        PlatformTransactionManager own() {
            return new OwnManager();
        }
    }

    /** Of nobody knows what. */
    static final class OwnManager extends AbstractPlatformTransactionManager {

        private static final long serialVersionUID = 1L;

        @Override
        protected Object doGetTransaction() {
            return new Object();
        }

        @Override
        protected void doBegin(Object transaction, TransactionDefinition definition) {}

        @Override
        protected void doCommit(DefaultTransactionStatus status) {}

        @Override
        protected void doRollback(DefaultTransactionStatus status) {}
    }

    @Test
    void aManagerOfAnUnknownDataSourceIsToldAndRefusedIfRequiredWhateverIsBesideIt(CapturedOutput output) {
        ConfigurableApplicationContext context = startOn(database.url(), WithOwnManager.class);
        TransactionTemplate own = new TransactionTemplate(context.getBean("own", PlatformTransactionManager.class));
        for (int i = 0; i < 2; i++) {
            locked(context, "a", () -> own.executeWithoutResult(status -> {}));
        }
        assertThat(output).contains("Commits of 'own' under leases are not fenced (its DataSource is not known)");
        assertThat(output.getAll().split(WARNING, -1)).hasSize(2);
        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));

        Throwable failure =
                catchThrowable(() -> startOn(database.url(), WithOwnManager.class, "pglock.fencing=required"));
        assertThat(Analyses.of(failure).getDescription()).contains("'own'").contains("its DataSource is not known");
    }

    static class WithHibernate extends TwoManagers {

        @Bean
        LocalSessionFactoryBean sessionFactory(DataSource dataSource) {
            LocalSessionFactoryBean factory = new LocalSessionFactoryBean();
            factory.setDataSource(dataSource);
            return factory;
        }

        @Bean
        HibernateTransactionManager hibernate(SessionFactory sessionFactory) {
            return new HibernateTransactionManager(sessionFactory);
        }
    }

    @Test
    void theCommitsOfHibernatesOwnManagerAreFencedToo(CapturedOutput output) {
        ConfigurableApplicationContext context =
                startOn(database.url(), WithHibernate.class, "pglock.fencing=required");
        TransactionTemplate hibernate = new TransactionTemplate(context.getBean(HibernateTransactionManager.class));

        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context, hibernate));
        assertThat(database.number("SELECT value FROM counter")).isZero();
        assertThat(output).doesNotContain(WARNING);
    }

    /** Like one that asks who the caller is: outside of a request there is nobody. */
    static class WithMoodyDataSource extends Program {

        static volatile boolean inRequest;

        @Bean
        DataSource dataSource(Environment environment) {
            DriverManagerDataSource target = new DriverManagerDataSource(
                    environment.getRequiredProperty("spring.datasource.url"),
                    environment.getRequiredProperty("spring.datasource.username"),
                    environment.getRequiredProperty("spring.datasource.password"));
            return new DelegatingDataSource(target) {
                @Override
                public Connection getConnection() throws SQLException {
                    if (!inRequest) {
                        throw new IllegalStateException("There is no request");
                    }
                    return super.getConnection();
                }
            };
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "required"})
    void aDataSourceThatHasNoConnectionForAStartIsAskedAtTheFirstCommit(String fencing, CapturedOutput output) {
        WithMoodyDataSource.inRequest = false;
        ConfigurableApplicationContext context =
                startOn(database.url(), WithMoodyDataSource.class, "pglock.fencing=" + fencing);
        WithMoodyDataSource.inRequest = true;

        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
        assertThat(output).doesNotContain(WARNING);
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "required"})
    void aFailedTransactionDecidesNothing(String fencing, CapturedOutput output) {
        ConfigurableApplicationContext context =
                start("a", Application.class, "pglock.on-lost=continue", "pglock.fencing=" + fencing);
        JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
        Runnable failing = () -> transactions(context).executeWithoutResult(status -> {
            jdbc.update("UPDATE counter SET value = value + 1");
            assertThatExceptionOfType(DataAccessException.class).isThrownBy(() -> jdbc.execute("SELECT 1 / 0"));
        });

        Throwable without = catchThrowable(failing::run);
        Throwable with = catchThrowable(() -> locked(context, "failing", failing));
        assertThat(with == null ? null : with.getClass()).isEqualTo(without == null ? null : without.getClass());
        assertThat(output).doesNotContain(WARNING);
        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> commitLate(context));
        assertThat(database.number("SELECT value FROM counter")).isZero();
    }

    @Test
    void onlyCommitsUnderALockCostMoreTwoRoundTripsForEach() {
        long[] off = roundTrips("pglock.fencing=off");
        long[] on = roundTrips("pglock.fencing=auto");

        assertThat(off).containsExactly(off[0], off[0], off[0]);
        assertThat(on).containsExactly(off[0], off[0] + 2, off[0] + 4);
    }

    /** Of one transaction under no lock, under one and under two. */
    private long[] roundTrips(String property) {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            ConfigurableApplicationContext context = start(database.url(proxy), property);
            Runnable none = work(context);
            Runnable one = () -> locked(context, "a", none);
            Runnable two = () -> locked(context, "b", one);
            for (int i = 0; i < 10; i++) {
                two.run();
            }
            return new long[] {roundTrips(proxy, none), roundTrips(proxy, one), roundTrips(proxy, two)};
        }
    }

    private static void locked(ConfigurableApplicationContext context, String name, Runnable body) {
        assertThat(context.getBean(LockRegistry.class).runOnce(name, body::run)).isTrue();
    }

    private static Runnable work(ConfigurableApplicationContext context) {
        JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
        TransactionTemplate transactions = transactions(context);
        return () -> transactions.executeWithoutResult(status -> jdbc.update("UPDATE counter SET value = value + 1"));
    }

    /** The fewest of some: a pool asks a connection that was idle for half a second whether it still lives. */
    private static long roundTrips(TcpProxy proxy, Runnable work) {
        return IntStream.range(0, 10)
                .mapToLong(i -> {
                    long before = proxy.roundTrips();
                    work.run();
                    return proxy.roundTrips() - before;
                })
                .min()
                .orElseThrow();
    }
}
