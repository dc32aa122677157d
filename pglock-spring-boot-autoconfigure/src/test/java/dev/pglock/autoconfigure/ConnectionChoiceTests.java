package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import dev.pglock.annotation.PgLockDataSource;
import dev.pglock.jdbc.ConnectionSpec;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ContextConsumer;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;

/** Which database, and by which connections: a table of what an application may have. No database is needed. */
@ExtendWith(OutputCaptureExtension.class)
class ConnectionChoiceTests {

    private static final String URL = "jdbc:postgresql://nowhere/orders";

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class, PgLockAutoConfiguration.class))
            .withUserConfiguration(Choice.class);

    private final ApplicationContextRunner withPool = runner.withPropertyValues("spring.datasource.url=" + URL);

    @Test
    void besideThePoolOfSpringBootOwnConnectionsAreOpened() {
        withPool.run(context -> {
            LockConnections chosen = context.getBean(LockConnections.class);
            assertThat(chosen).isInstanceOf(LockConnections.Own.class);
            assertThat(chosen.origin()).isEqualTo("DataSource bean 'dataSource'");
            assertThat(context.getBean(HikariDataSource.class).getHikariPoolMXBean())
                    .as("the application's pool is not started")
                    .isNull();
        });
    }

    @Test
    void theMarkedDataSourceWinsOverTheUrlAndThePrimaryOne() {
        runner.withUserConfiguration(TwoPools.class, MarkedPool.class)
                .withPropertyValues("pglock.datasource.url=jdbc:postgresql://elsewhere/locks")
                .run(to("DataSource bean 'locks'", "jdbc:postgresql://locks/db"));
    }

    @Test
    void theUrlWinsOverTheApplicationsDataSource() {
        withPool.withPropertyValues("pglock.datasource.url=jdbc:postgresql://elsewhere/locks?sslmode=require")
                .run(to("pglock.datasource.url", "jdbc:postgresql://elsewhere/locks?sslmode=require"));
    }

    @Test
    void theUrlIsEnoughWhereThereIsNoDataSource() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(PgLockAutoConfiguration.class))
                .withUserConfiguration(Choice.class)
                .withPropertyValues("pglock.datasource.url=" + URL)
                .run(to("pglock.datasource.url", URL));
    }

    @Test
    void thePrimaryDataSourceIsTheApplications() {
        runner.withUserConfiguration(PrimaryPool.class)
                .run(to("DataSource bean 'primary'", "jdbc:postgresql://primary/db"));
    }

    @Test
    void aDataSourceThatIsNoDefaultCandidateDisturbsNobody() {
        runner.withUserConfiguration(PoolBesideAnother.class)
                .run(to("DataSource bean 'orders'", "jdbc:postgresql://orders/db"));
    }

    @Test
    void aPoolBehindProxiesIsFound() {
        runner.withBean("dataSource", DataSource.class, () -> {
                    ProxyFactory proxy = new ProxyFactory(new LazyConnectionDataSourceProxy(
                            new DelegatingDataSource(pool("jdbc:postgresql://behind/db"))));
                    return (DataSource) proxy.getProxy();
                })
                .run(to("DataSource bean 'dataSource'", "jdbc:postgresql://behind/db"));
    }

    @Test
    void aLazyConnectionProxyLeadsToItsPrimaryTarget() {
        runner.withBean("dataSource", DataSource.class, () -> {
                    LazyConnectionDataSourceProxy proxy =
                            new LazyConnectionDataSourceProxy(pool("jdbc:postgresql://writer/db"));
                    proxy.setReadOnlyDataSource(pool("jdbc:postgresql://reader/db"));
                    return proxy;
                })
                .run(to("DataSource bean 'dataSource'", "jdbc:postgresql://writer/db"));
    }

    @Test
    void sharingBorrowsAndSaysWhatThatCosts(CapturedOutput output) {
        withPool.withPropertyValues("pglock.datasource.shared=true").run(context -> {
            assertThat(context.getBean(LockConnections.class))
                    .isEqualTo(new LockConnections.Borrowed(
                            context.getBean(DataSource.class), "DataSource bean 'dataSource'"));
            assertThat(output)
                    .containsOnlyOnce("Locks borrow their connections from the DataSource bean 'dataSource'"
                            + " (pglock.datasource.shared=true)")
                    .contains("no lock is taken or renewed");
        });
    }

    @Test
    void whatCannotBeCopiedIsBorrowed(CapturedOutput output) {
        DataSource foreign = new DriverManagerDataSource(URL);
        runner.withBean("foreign", DataSource.class, () -> foreign).run(context -> {
            assertThat(context.getBean(LockConnections.class))
                    .isEqualTo(new LockConnections.Borrowed(foreign, "DataSource bean 'foreign'"));
            assertThat(output)
                    .contains("the configuration of org.springframework.jdbc.datasource.DriverManagerDataSource is not"
                            + " known");
        });
    }

    @Test
    void aPoolWhoseSessionsAreSetUpBySqlIsBorrowedFrom(CapturedOutput output) {
        withPool.withPropertyValues("spring.datasource.hikari.connection-init-sql=SET ROLE owner")
                .run(context -> {
                    assertThat(context.getBean(LockConnections.class)).isInstanceOf(LockConnections.Borrowed.class);
                    assertThat(output).contains("its connectionInitSql may change anything");
                });
    }

    @Test
    void nothingIsBorrowedThroughAProxyThatJoinsTheTransaction() {
        DataSource foreign = new DriverManagerDataSource(URL);
        runner.withBean(
                        "proxy",
                        DataSource.class,
                        () -> new TransactionAwareDataSourceProxy(new LazyConnectionDataSourceProxy(foreign)))
                .run(context -> assertThat(context.getBean(LockConnections.class))
                        .isEqualTo(new LockConnections.Borrowed(foreign, "DataSource bean 'proxy'")));
    }

    @Test
    void connectionDetailsComeBeforeBorrowing() {
        runner.withBean("foreign", DataSource.class, () -> new DriverManagerDataSource(URL))
                .withBean(JdbcConnectionDetails.class, Details::new)
                .run(to("the JDBC connection details", "jdbc:postgresql://details/db"));
    }

    @Test
    void aPlainDataSourceOfTheDriverIsCopied() {
        PGSimpleDataSource plain = new PGSimpleDataSource();
        plain.setUrl("jdbc:postgresql://plain:5433/db?sslmode=require");
        plain.setUser("app");
        plain.setPassword("secret");
        runner.withBean("plain", DataSource.class, () -> plain)
                .run(context -> assertThat(spec(context))
                        .returns("app", ConnectionSpec::username)
                        .returns("secret", ConnectionSpec::password)
                        .extracting(ConnectionSpec::url)
                        .asString()
                        .startsWith("jdbc:postgresql://plain:5433/db?")
                        .contains("sslmode=require"));
    }

    @Test
    void aCopyHasTheDriverPropertiesTheSchemaAndTheCredentialsOfThePool() {
        withPool.withPropertyValues(
                        "spring.datasource.username=app",
                        "spring.datasource.password=secret",
                        "spring.datasource.hikari.schema=Jobs",
                        "spring.datasource.hikari.data-source-properties.sslmode=verify-full",
                        "spring.datasource.hikari.data-source-properties.targetServerType=primary")
                .run(context -> assertThat(spec(context))
                        .isEqualTo(new ConnectionSpec(
                                URL + "?currentSchema=%22Jobs%22",
                                "app",
                                "secret",
                                Map.of("sslmode", "verify-full", "targetServerType", "primary"))));
    }

    @Test
    void aCopyOfAPoolWithADataSourceClassHasItsProperties() {
        HikariDataSource pool = new HikariDataSource();
        pool.setDataSourceClassName(PGSimpleDataSource.class.getName());
        pool.addDataSourceProperty("serverName", "host");
        pool.addDataSourceProperty("databaseName", "db");
        pool.addDataSourceProperty("user", "inner");
        pool.addDataSourceProperty("password", "secret");
        pool.addDataSourceProperty("sslmode", "require");
        runner.withBean("pool", DataSource.class, () -> pool).run(context -> {
            assertThat(spec(context).url())
                    .startsWith("jdbc:postgresql://host/db?")
                    .contains("sslmode=require");
            assertThat(spec(context).username()).isEqualTo("inner");
            pool.setUsername("outer");
            assertThat(spec(context).username()).isEqualTo("outer");
        });
    }

    @Test
    void credentialsAreThoseOfThePoolAtThatMoment() {
        withPool.withPropertyValues("spring.datasource.username=app", "spring.datasource.password=old")
                .run(context -> {
                    assertThat(spec(context).password()).isEqualTo("old");
                    HikariDataSource pool = context.getBean(HikariDataSource.class);
                    pool.getHikariConfigMXBean().setCredentials(Credentials.of("app", "new"));
                    assertThat(spec(context).password()).isEqualTo("new");
                    pool.setCredentialsProvider(() -> Credentials.of("token-user", "token"));
                    assertThat(spec(context))
                            .returns("token-user", ConnectionSpec::username)
                            .returns("token", ConnectionSpec::password);
                });
    }

    @Test
    void aDatabaseThatIsNotPostgresIsRefusedByItsUrl() {
        runner.withPropertyValues("spring.datasource.url=jdbc:h2:mem:x", "spring.datasource.hikari.maximum-pool-size=2")
                .run(refused(
                        "Locks are kept in PostgreSQL, but DataSource bean 'dataSource' leads to H2",
                        "pglock.strategy=local",
                        "pglock.enabled=false"));
        runner.withPropertyValues("pglock.datasource.url=jdbc:mysql://db/x?password=hunter2")
                .run(refused("pglock.datasource.url leads to MYSQL"));
    }

    @Test
    void aUrlThatNoDriverUnderstandsIsRefusedAndNotShown() {
        for (String url :
                List.of("jdbc:postgresql://h:port/x?password=hunter2", "jdbc:postgres://h/x?password=hunter2")) {
            runner.withPropertyValues("pglock.datasource.url=" + url).run(context -> {
                refused("pglock.datasource.url", "understood by no driver").accept(context);
                assertThat(context.getStartupFailure())
                        .satisfies(e -> assertThat(stackTraceOf(e)).doesNotContain("hunter2"));
            });
        }
    }

    @Test
    void aRoutingDataSourceIsRefused() {
        runner.withBean("tenants", DataSource.class, () -> new Routing())
                .run(refused("'tenants' is a routing one", "@PgLockDataSource"));
    }

    @Test
    void aRoutingDataSourceIsFoundBehindProxiesAndInsideAPool() {
        runner.withBean("lazy", DataSource.class, () -> new LazyConnectionDataSourceProxy(new Routing()))
                .run(refused("'lazy' is a routing one", "@PgLockDataSource"));
        runner.withBean("aop", DataSource.class, () -> (DataSource) new ProxyFactory(new Routing()).getProxy())
                .run(refused("'aop' is a routing one", "@PgLockDataSource"));
        runner.withBean("pooled", DataSource.class, () -> {
                    HikariDataSource pool = new HikariDataSource();
                    pool.setDataSource(new Routing());
                    return pool;
                })
                .run(refused("'pooled' is a routing one", "@PgLockDataSource"));
    }

    @Test
    void aRoutingDataSourceIsRefusedEvenIfItIsShared() {
        runner.withBean("tenants", DataSource.class, () -> new Routing())
                .withPropertyValues("pglock.datasource.shared=true")
                .run(refused("'tenants' is a routing one", "@PgLockDataSource"));
    }

    @Test
    void aRoutingDataSourceIsNoneOfOurBusinessWhereTheUrlIsSet() {
        runner.withBean("tenants", DataSource.class, () -> new Routing())
                .withPropertyValues("pglock.datasource.url=" + URL)
                .run(to("pglock.datasource.url", URL));
    }

    @Test
    void severalDataSourcesWithoutAChoiceAreRefusedByName() {
        runner.withUserConfiguration(TwoPools.class)
                .run(refused("several DataSource beans", "'orders', 'archive'", "@PgLockDataSource"));
    }

    @Test
    void severalMarkedDataSourcesAreRefusedByName() {
        runner.withUserConfiguration(MarkedPool.class, OtherMarkedPool.class)
                .run(refused("marked with @PgLockDataSource", "'locks', 'otherLocks'", "Leave the annotation"));
    }

    @Test
    void withoutADataSourceAllWaysOutAreNamed() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(PgLockAutoConfiguration.class))
                .withUserConfiguration(Choice.class)
                .run(refused(
                        "there is no DataSource bean",
                        "pglock.datasource.url",
                        "pglock.strategy=local",
                        "pglock.enabled=false"));
    }

    private static ContextConsumer<AssertableApplicationContext> to(String origin, String url) {
        return context -> {
            assertThat(context).hasNotFailed();
            LockConnections chosen = context.getBean(LockConnections.class);
            assertThat(chosen.origin()).isEqualTo(origin);
            assertThat(spec(context).url()).isEqualTo(url);
        };
    }

    private static ContextConsumer<AssertableApplicationContext> refused(String... texts) {
        return context -> {
            assertThat(context).hasFailed();
            var analysis = Analyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription() + "\n" + analysis.getAction()).contains(texts);
        };
    }

    private static ConnectionSpec spec(AssertableApplicationContext context) {
        return ((LockConnections.Own) context.getBean(LockConnections.class))
                .specs()
                .get();
    }

    private static String stackTraceOf(Throwable failure) {
        StringWriter text = new StringWriter();
        failure.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    private static HikariDataSource pool(String url) {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(url);
        return pool;
    }

    @Configuration(proxyBeanMethods = false)
    static class Choice {

        @Bean
        LockConnections chosen(
                PgLockProperties properties,
                ConfigurableListableBeanFactory beans,
                @PgLockDataSource ObjectProvider<DataSource> marked,
                ObjectProvider<DataSource> any,
                ObjectProvider<JdbcConnectionDetails> details) {
            return new ConnectionChoice(properties.datasource(), beans, marked, any, details).choose();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoPools {

        @Bean
        DataSource orders() {
            return pool("jdbc:postgresql://orders/db");
        }

        @Bean
        DataSource archive() {
            return pool("jdbc:postgresql://archive/db");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class PrimaryPool {

        @Bean
        @Primary
        DataSource primary() {
            return pool("jdbc:postgresql://primary/db");
        }

        @Bean
        DataSource secondary() {
            return pool("jdbc:postgresql://secondary/db");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class PoolBesideAnother {

        @Bean
        DataSource orders() {
            return pool("jdbc:postgresql://orders/db");
        }

        @Bean(defaultCandidate = false)
        DataSource quartz() {
            return pool("jdbc:postgresql://quartz/db");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class MarkedPool {

        @Bean(defaultCandidate = false)
        @PgLockDataSource
        DataSource locks() {
            return pool("jdbc:postgresql://locks/db");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OtherMarkedPool {

        @Bean(defaultCandidate = false)
        @PgLockDataSource
        DataSource otherLocks() {
            return pool("jdbc:postgresql://otherlocks/db");
        }
    }

    static final class Routing extends AbstractRoutingDataSource {

        Routing() {
            setTargetDataSources(Map.of("a", pool("jdbc:postgresql://a/db")));
            setDefaultTargetDataSource(pool("jdbc:postgresql://default/db"));
            initialize();
        }

        @Override
        protected Object determineCurrentLookupKey() {
            return null;
        }
    }

    static final class Details implements JdbcConnectionDetails {

        @Override
        public String getUsername() {
            return "app";
        }

        @Override
        public String getPassword() {
            return "secret";
        }

        @Override
        public String getJdbcUrl() {
            return "jdbc:postgresql://details/db";
        }
    }
}
