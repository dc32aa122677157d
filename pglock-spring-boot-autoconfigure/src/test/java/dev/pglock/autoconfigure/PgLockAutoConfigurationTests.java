package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.annotation.PgLockDataSource;
import dev.pglock.annotation.RunOnce;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseTable;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.actuate.autoconfigure.beans.BeansEndpointAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.flyway.autoconfigure.FlywayAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceInitializationAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ContextConsumer;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.embedded.EmbeddedDatabaseBuilder;
import org.springframework.jdbc.datasource.embedded.EmbeddedDatabaseType;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;

/** Given these beans and properties, this is in the context, and that is not. */
@ExtendWith(OutputCaptureExtension.class)
class PgLockAutoConfigurationTests {

    private static TestDatabase database;

    private final ApplicationContextRunner bare = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    TaskSchedulingAutoConfiguration.class,
                    DataSourceAutoConfiguration.class,
                    DataSourceInitializationAutoConfiguration.class,
                    DataSourceTransactionManagerAutoConfiguration.class,
                    TransactionAutoConfiguration.class,
                    JdbcTemplateAutoConfiguration.class,
                    PgLockAutoConfiguration.class,
                    PgLockFencingAutoConfiguration.class,
                    PgLockInterceptionAutoConfiguration.class))
            .withPropertyValues("spring.application.name=test");

    private final ApplicationContextRunner withoutDataSource = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(PgLockAutoConfiguration.class, PgLockInterceptionAutoConfiguration.class))
            .withPropertyValues("spring.application.name=test");

    @BeforeAll
    static void createDatabase() {
        database = PostgresServer.shared().newDatabase();
    }

    @AfterAll
    static void dropDatabase() {
        database.close();
    }

    private ApplicationContextRunner onPostgres() {
        return on(bare, database);
    }

    private static ApplicationContextRunner on(ApplicationContextRunner runner, TestDatabase db) {
        return runner.withPropertyValues(
                "spring.datasource.url=" + db.url(),
                "spring.datasource.username=" + db.username(),
                "spring.datasource.password=" + db.password());
    }

    @Test
    void theRegistryKeepsLocksInTheDatabaseOfTheApplication() {
        onPostgres().withUserConfiguration(Locked.class).run(context -> {
            assertThat(context).hasSingleBean(LockEngine.class);
            try (LockHandle lock = take(context, "a")) {
                assertThat(lock.strategy()).isEqualTo(LockStrategy.LEASE);
                assertThat(database.text(
                                "SELECT holder_label FROM pglock_lease WHERE namespace = 'test' AND name = 'a'"))
                        .isEqualTo(context.getBean(PgLockSettings.class).label());
                assertThat(database.number("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE"
                                + " 'pglock:test:%' AND datname = current_database()"))
                        .isBetween(1L, 2L);
            }
        });
    }

    @Test
    void ownConnectionsAreNoBeanAndChangeNothingOfSpringBootsOwnConfiguration() {
        onPostgres().withUserConfiguration(Locked.class).run(context -> {
            take(context, "a").close();
            assertThat(context)
                    .hasSingleBean(DataSource.class)
                    .hasSingleBean(HikariDataSource.class)
                    .hasSingleBean(JdbcTemplate.class)
                    .hasSingleBean(PlatformTransactionManager.class);
            assertThat(context.getBean(JdbcTemplate.class).queryForObject("SELECT 1", Integer.class))
                    .isEqualTo(1);
        });
    }

    @Test
    void nothingIsInitializedTooEarly(CapturedOutput output) {
        onPostgres()
                .withConfiguration(AutoConfigurations.of(
                        MetricsAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class,
                        BeansEndpointAutoConfiguration.class))
                .withUserConfiguration(Locked.class, Scheduling.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(AopUtils.isAopProxy(context.getBean(Job.class))).isTrue();
                    assertThat(output).doesNotContain("not eligible");
                });
    }

    /** To look for a bean by its type while post-processors are being made is to make all such factories. */
    @Configuration(proxyBeanMethods = false)
    static class Untold {

        static final List<String> made = new CopyOnWriteArrayList<>();

        @Bean
        @SuppressWarnings("rawtypes")
        static FactoryBean untold() {
            made.add(Arrays.toString(new Throwable().getStackTrace()));
            return new FactoryBean<Object>() {
                @Override
                public Object getObject() {
                    return "product";
                }

                @Override
                public @Nullable Class<?> getObjectType() {
                    return null;
                }
            };
        }
    }

    /** Nor are the advisors of others, which look for beans by their types themselves. */
    @Test
    void aFactoryThatDoesNotSayWhatItMakesIsNotMadeForPostProcessors(CapturedOutput output) {
        Untold.made.clear();
        new ApplicationContextRunner()
                .withConfiguration(
                        AutoConfigurations.of(PgLockAutoConfiguration.class, PgLockInterceptionAutoConfiguration.class))
                .withPropertyValues("pglock.strategy=local", "spring.application.name=test")
                .withUserConfiguration(Untold.class, Locked.class, Scheduling.class, Transactions.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(AopUtils.isAopProxy(context.getBean(Job.class))).isTrue();
                    assertThat(Untold.made)
                            .isNotEmpty()
                            .noneMatch(trace -> trace.contains("registerBeanPostProcessors"));
                    assertThat(output).doesNotContain("not eligible");
                });
    }

    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement
    static class Transactions {}

    @Test
    void anExhaustedPoolOfTheApplicationStopsNoLock() {
        onPostgres()
                .withPropertyValues("spring.datasource.hikari.maximum-pool-size=1")
                .run(context -> {
                    try (Connection ignored = context.getBean(DataSource.class).getConnection()) {
                        take(context, "a").close();
                    }
                });
    }

    @Test
    void aSharedPoolLendsItsConnections() {
        onPostgres()
                .withPropertyValues("pglock.datasource.shared=true", "pglock.instance-id=sharing")
                .run(context -> {
                    try (LockHandle lock = take(context, "a")) {
                        assertThat(lock.isHeld()).isTrue();
                        assertThat(database.number("SELECT count(*) FROM pg_stat_activity WHERE application_name ="
                                        + " 'pglock:test:sharing'"))
                                .isZero();
                    }
                });
    }

    @Test
    void theMarkedDatabaseKeepsTheLocks() {
        try (TestDatabase locks = PostgresServer.shared().newDatabase()) {
            onPostgres()
                    .withBean("marked", MarkedConfiguration.class, () -> new MarkedConfiguration(locks))
                    .run(context -> {
                        take(context, "in-the-marked-one").close();
                        assertThat(locks.number("SELECT count(*) FROM pglock_lease WHERE name = 'in-the-marked-one'"))
                                .isEqualTo(1);
                        assertThat(context).hasSingleBean(JdbcTemplate.class);
                        assertThat(context.getBean(JdbcTemplate.class)
                                        .queryForObject("SELECT current_database()", String.class))
                                .isEqualTo(database.name());
                    });
        }
    }

    @Test
    void theUrlLeadsToAnotherDatabase() {
        try (TestDatabase locks = PostgresServer.shared().newDatabase()) {
            withoutDataSource
                    .withPropertyValues(
                            "pglock.datasource.url=" + locks.url(),
                            "pglock.datasource.username=" + locks.username(),
                            "pglock.datasource.password=" + locks.password())
                    .withUserConfiguration(Locked.class)
                    .run(context -> {
                        take(context, "by-url").close();
                        assertThat(locks.number("SELECT count(*) FROM pglock_lease WHERE name = 'by-url'"))
                                .isEqualTo(1);
                    });
        }
    }

    @Test
    void theSchemaOfThePoolHoldsTheTable() {
        try (TestDatabase db = PostgresServer.shared().newDatabase()) {
            db.execute("CREATE SCHEMA \"Jobs\"");
            on(bare, db)
                    .withPropertyValues("spring.datasource.hikari.schema=Jobs")
                    .withUserConfiguration(Locked.class)
                    .run(context -> {
                        assertThat(context).hasNotFailed();
                        assertThat(db.isTrue("SELECT to_regclass('\"Jobs\".pglock_lease') IS NOT NULL"))
                                .isTrue();
                        assertThat(db.isTrue("SELECT to_regclass('public.pglock_lease') IS NULL"))
                                .isTrue();
                    });
        }
    }

    @Test
    void rotatedCredentialsAreUsedForNewConnections() {
        String role = PostgresServer.shared().newRole();
        try (TestDatabase db = PostgresServer.shared().newDatabase()) {
            db.execute("GRANT CREATE ON SCHEMA public TO " + role);
            on(bare, db)
                    .withPropertyValues("spring.datasource.username=" + role, "spring.datasource.password=" + role)
                    .withUserConfiguration(Locked.class)
                    .run(context -> {
                        take(context, "a").close();
                        db.execute("ALTER ROLE " + role + " PASSWORD 'rotated'");
                        db.terminate("pglock:%");
                        context.getBean(HikariDataSource.class)
                                .getHikariConfigMXBean()
                                .setCredentials(Credentials.of(role, "rotated"));
                        take(context, "a").close();
                    });
        }
    }

    @Test
    void theApplicationsOwnRegistryWins() {
        LockEngine own = LockEngine.builder(EngineSettings.defaults("own", "own", LockStrategy.LOCAL))
                .store(new LocalStore(StoreIdentity.random("own", "own"), new LocalSpace()))
                .build();
        withoutDataSource
                .withBean("own", LockRegistry.class, () -> own)
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    assertThat(context).hasSingleBean(LockRegistry.class);
                    context.getBean(Job.class).run();
                    assertThat(own.find("job")).isPresent();
                });
    }

    @Test
    void inMemoryNoDatabaseIsNeeded(CapturedOutput output) {
        withoutDataSource
                .withPropertyValues("pglock.strategy=local", "spring.application.name=")
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    context.getBean(Job.class).run();
                    assertThat(context.getBean(LockRegistry.class).find("job")).isPresent();
                    assertThat(output).doesNotContain("WARN");
                });
    }

    @Test
    void switchedOffAnnotationsPassThroughAndTheRegistryWorksInMemory(CapturedOutput output) {
        withoutDataSource
                .withPropertyValues("pglock.enabled=false")
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    Job job = context.getBean(Job.class);
                    assertThat(job.getClass()).isEqualTo(Job.class);
                    job.run();
                    assertThat(job.runs).isEqualTo(1);
                    try (LockHandle lock = take(context, "a")) {
                        assertThat(lock.strategy()).isEqualTo(LockStrategy.LOCAL);
                    }
                    assertThat(output).containsOnlyOnce("pglock.enabled=false");
                });
    }

    @Test
    void withoutADataSourceItStartsIfNothingIsLocked() {
        withoutDataSource.run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBeanFactory().containsSingleton("pgLockRegistry"))
                    .isFalse();
        });
    }

    @Test
    void withoutADataSourceLockedMethodsFailTheStart() {
        withoutDataSource
                .withUserConfiguration(Locked.class)
                .run(failsWith("there is no DataSource bean", "pglock.strategy=local", "pglock.enabled=false"));
    }

    @Test
    void withH2ItStartsIfNothingIsLocked() {
        bare.withPropertyValues("spring.datasource.url=jdbc:h2:mem:nothing")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void withH2LockedMethodsFailTheStart() {
        bare.withPropertyValues("spring.datasource.url=jdbc:h2:mem:locked")
                .withUserConfiguration(Locked.class)
                .run(failsWith("leads to H2", "pglock.strategy=local", "pglock.enabled=false"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"always", "validate", "never"})
    void anEmbeddedDatabaseOfAnotherProductFailsTheStart(String mode) {
        bare.withBean(
                        DataSource.class,
                        () -> new EmbeddedDatabaseBuilder()
                                .setType(EmbeddedDatabaseType.H2)
                                .generateUniqueName(true)
                                .build())
                .withPropertyValues("pglock.lease.initialize-schema=" + mode)
                .withUserConfiguration(Locked.class)
                .run(failsWith("pglock needs PostgreSQL, but this is H2", "pglock.strategy=local"));
    }

    /** As libraries do that log or count statements: nothing of the driver's can be seen through it. */
    @ParameterizedTest
    @ValueSource(strings = {"a pool inside", "the driver inside"})
    void aDataSourceBehindAWrapperOfEverythingIsUsed(String inside) {
        AtomicInteger statements = new AtomicInteger();
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(database.url());
        pool.setUsername(database.username());
        pool.setPassword(database.password());
        DataSource real = inside.equals("a pool inside") ? pool : database.dataSource();
        bare.withBean(DataSource.class, () -> spied(DataSource.class, real, statements))
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    context.getBean(Job.class).run();
                    assertThat(context.getBean(LockRegistry.class).find("job")).isPresent();
                    assertThat(statements)
                            .as("statements of locks went through it")
                            .hasPositiveValue();
                });
        pool.close();
    }

    private static <T> T spied(Class<T> type, Object real, AtomicInteger statements) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    if (method.getName().equals("isWrapperFor")) {
                        return false;
                    }
                    if (method.getName().equals("equals")) {
                        return proxy == arguments[0];
                    }
                    if (method.getName().startsWith("execute")) {
                        statements.incrementAndGet();
                    }
                    Object result;
                    try {
                        result = method.invoke(real, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                    Class<?> returned = method.getReturnType();
                    return result != null
                                    && returned.isInterface()
                                    && returned.getPackageName().equals("java.sql")
                            ? spied(returned, result, statements)
                            : result;
                }));
    }

    @ParameterizedTest
    @ValueSource(strings = {"always", "validate"})
    void aDatabaseThatIsAwayFailsTheStart(String mode) {
        bare.withPropertyValues(
                        "spring.datasource.url=jdbc:postgresql://localhost:1/orders?password=hunter2",
                        "pglock.lease.initialize-schema=" + mode)
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    failsWith(
                                    "The database of the locks (DataSource bean 'dataSource') cannot be reached:"
                                            + " Connection to localhost:1 refused",
                                    "initialize-schema=never")
                            .accept(context);
                    assertThat(context.getStartupFailure()).hasStackTraceContaining("refused");
                });
    }

    @Test
    void aDatabaseThatIsAwayDoesNotFailTheStartIfNobodyIsToLook(CapturedOutput output) {
        bare.withPropertyValues(
                        "spring.datasource.url=jdbc:postgresql://localhost:1/orders?password=hunter2",
                        "pglock.lease.initialize-schema=never")
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).contains("cannot be reached").doesNotContain("hunter2");
                    assertThatThrownBy(() -> take(context, "a")).isInstanceOf(LockStorageException.class);
                });
    }

    @Test
    void aMissingTableFailsTheStartWithItsDefinition() {
        try (TestDatabase empty = PostgresServer.shared().newDatabase()) {
            on(bare, empty)
                    .withPropertyValues("pglock.lease.initialize-schema=validate")
                    .withUserConfiguration(Locked.class)
                    .run(failsWith("pglock_lease", "is missing", "CREATE TABLE", "GRANT"));
        }
    }

    @Test
    void aRoleThatMayCreateNothingIsToldWhatToHandToItsAdministrator() {
        String role = PostgresServer.shared().newRole();
        try (TestDatabase empty = PostgresServer.shared().newDatabase()) {
            empty.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC"); // granted before PostgreSQL 15
            on(bare, empty)
                    .withPropertyValues("spring.datasource.username=" + role, "spring.datasource.password=" + role)
                    .withUserConfiguration(Locked.class)
                    .run(failsWith("pglock_lease", "permission denied", "CREATE TABLE", "GRANT"));
        }
    }

    @Test
    void theRegistryComesAfterWhateverInitializesTheDatabase(@TempDir Path migrations) throws Exception {
        Files.writeString(migrations.resolve("V1__locks.sql"), LeaseSchema.ddl(LeaseTable.parse("jobs.leases")));
        try (TestDatabase db = PostgresServer.shared().newDatabase()) {
            db.execute("CREATE SCHEMA jobs");
            on(bare, db)
                    .withConfiguration(AutoConfigurations.of(FlywayAutoConfiguration.class))
                    .withPropertyValues(
                            "spring.flyway.locations=filesystem:" + migrations,
                            "pglock.lease.table=jobs.leases",
                            "pglock.lease.initialize-schema=validate")
                    .withUserConfiguration(Locked.class)
                    .run(context -> {
                        assertThat(context).hasNotFailed();
                        assertThat(context.getBeanFactory()
                                        .getBeanDefinition("pgLockRegistry")
                                        .getDependsOn())
                                .contains("flyway", "flywayInitializer");
                    });
        }
    }

    @Test
    void aSchemaScriptMayCreateTheTable(@TempDir Path directory) throws Exception {
        Path script =
                Files.writeString(directory.resolve("schema.sql"), LeaseSchema.ddl(LeaseTable.parse("pglock_lease")));
        try (TestDatabase db = PostgresServer.shared().newDatabase()) {
            on(bare, db)
                    .withPropertyValues(
                            "spring.sql.init.mode=always",
                            "spring.sql.init.schema-locations=" + script.toUri(),
                            "pglock.lease.initialize-schema=validate")
                    .withUserConfiguration(Locked.class)
                    .run(context -> assertThat(context).hasNotFailed());
        }
    }

    @Test
    void configurationWinsOverTheCallerWhoWinsOverTheDefaults() {
        onPostgres()
                .withPropertyValues(
                        "pglock.lease-duration=20s",
                        "pglock.locks[0].name=configured",
                        "pglock.locks[0].lease-duration=5m",
                        "pglock.locks[0].min-hold=1m")
                .run(context -> {
                    LockRegistry registry = context.getBean(LockRegistry.class);
                    LockRequest configured = LockRequest.of("configured").leaseDuration(Duration.ofSeconds(40));
                    LockRequest asked = LockRequest.of("asked").leaseDuration(Duration.ofSeconds(40));
                    try (LockHandle one = registry.tryAcquire(configured).orElseThrow();
                            LockHandle two = registry.tryAcquire(asked).orElseThrow();
                            LockHandle three = take(context, "default")) {
                        assertThat(seconds(one)).isEqualTo(300);
                        assertThat(seconds(two)).isEqualTo(40);
                        assertThat(seconds(three)).isEqualTo(20);
                    }
                });
    }

    private static long seconds(LockHandle lock) {
        return database.number(
                "SELECT round(extract(epoch FROM expires_at - acquired_at)) FROM pglock_lease WHERE name = ?",
                lock.name());
    }

    @Test
    void listenersAreToldInTheirOrder() {
        withoutDataSource
                .withPropertyValues("pglock.strategy=local")
                .withUserConfiguration(ListenersInReverse.class)
                .run(context -> {
                    take(context, "a").close();
                    assertThat(context.getBean("told")).isEqualTo(List.of("first", "second"));
                });
    }

    @Test
    void aNamespaceThatNobodyChoseIsWarnedOfOnce(CapturedOutput output) {
        onPostgres()
                .withPropertyValues("spring.application.name=")
                .withUserConfiguration(Locked.class)
                .run(context -> assertThat(output).containsOnlyOnce("the namespace of the locks is 'application'"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"org.springframework.orm", "org.springframework.transaction", "org.springframework.jdbc"})
    void itStartsWithoutSpringsTransactions(String missing) {
        on(withoutDataSource, database)
                .withConfiguration(AutoConfigurations.of(
                        PgLockFencingAutoConfiguration.class, PgLockTransactionAutoConfiguration.class))
                .withPropertyValues("pglock.strategy=local")
                .withClassLoader(new FilteredClassLoader(missing))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    take(context, "a").close();
                });
    }

    @Test
    void itStartsWithNothingOptionalOnTheClassPath() {
        onPostgres()
                .withUserConfiguration(Locked.class)
                .withClassLoader(new FilteredClassLoader(
                        "io.micrometer",
                        "org.aspectj",
                        "org.springframework.boot.actuate",
                        "org.springframework.boot.health",
                        "org.springframework.boot.micrometer",
                        "org.springframework.orm",
                        "org.springframework.web",
                        "org.flywaydb"))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    take(context, "a").close();
                });
    }

    @Test
    void itStartsWithoutTransactionManagement() {
        on(
                        new ApplicationContextRunner()
                                .withConfiguration(AutoConfigurations.of(
                                        DataSourceAutoConfiguration.class,
                                        PgLockAutoConfiguration.class,
                                        PgLockInterceptionAutoConfiguration.class)),
                        database)
                .withPropertyValues("spring.aop.auto=false")
                .withUserConfiguration(Locked.class)
                .run(context -> {
                    context.getBean(Job.class).run();
                    assertThat(context.getBean(LockRegistry.class).find("job")).isPresent();
                });
    }

    @Test
    void lazyInitializationHidesNoFailure() {
        withoutDataSource
                .withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .withUserConfiguration(Locked.class)
                .run(failsWith("there is no DataSource bean"));
    }

    @Test
    void aMethodThatCannotBeLockedFailsTheStartWithTheWayOut() {
        withoutDataSource
                .withPropertyValues("pglock.strategy=local")
                .withBean(Unlockable.class)
                .run(failsWith("nightly", "final"));
    }

    private static LockHandle take(AssertableApplicationContext context, String name) {
        return context.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of(name))
                .orElseThrow();
    }

    private static ContextConsumer<AssertableApplicationContext> failsWith(String... texts) {
        return context -> {
            assertThat(context).hasFailed();
            var analysis = Analyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription() + "\n" + analysis.getAction())
                    .contains(texts)
                    .doesNotContain("hunter2");
        };
    }

    /** Public, because a proxy in the class loader of a test is in another package. */
    public static class Job {

        int runs;

        @RunOnce("job")
        public void run() {
            runs++;
        }
    }

    static class Unlockable {

        @RunOnce
        final void nightly() {}
    }

    @Configuration(proxyBeanMethods = false)
    static class Locked {

        @Bean
        Job job() {
            return new Job();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {}

    /** Holds the database for its bean method. */
    @Configuration(proxyBeanMethods = false)
    static class MarkedConfiguration {

        private final TestDatabase locks;

        MarkedConfiguration(TestDatabase locks) {
            this.locks = locks;
        }

        @Bean(defaultCandidate = false)
        @PgLockDataSource
        DataSource lockDataSource() {
            return locks.dataSource();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ListenersInReverse {

        @Bean
        List<String> told() {
            return new ArrayList<>();
        }

        @Bean
        @Order(2)
        LockListener second(List<String> told) {
            return listener(told, "second");
        }

        @Bean
        @Order(1)
        LockListener first(List<String> told) {
            return listener(told, "first");
        }

        private static LockListener listener(List<String> told, String name) {
            return new LockListener() {
                @Override
                public void acquired(LockHandle lock) {
                    told.add(name);
                }
            };
        }
    }
}
