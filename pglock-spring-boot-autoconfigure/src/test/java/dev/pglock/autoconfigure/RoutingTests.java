package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockContext;
import dev.pglock.annotation.PgLockDataSource;
import dev.pglock.annotation.RunOnce;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** Beside a DataSource that leads each thread to the database of its tenant, or to a read replica. */
class RoutingTests extends TwoReplicas {

    private static final ThreadLocal<String> TENANT = new ThreadLocal<>();

    private static final TestDatabase OTHER = PostgresServer.shared().newDatabase();

    @AfterEach
    void leave() {
        TENANT.remove();
    }

    @Test
    void locksStayInTheirDatabaseWhateverTenantTheBodyTurnsTo() {
        ConfigurableApplicationContext a = start("a", Tenants.class, "other.url=" + OTHER.url());
        Job job = a.getBean(Job.class);
        // Nobody is bound to the thread when the lock is taken, and somebody else when it is released.
        job.switchTenant();
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE name = 'tenants' AND holder IS NULL"))
                .isEqualTo(1);

        TENANT.set("reads only");
        assertThat(job.readOnly()).isTrue();

        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE name = 'reads' AND fence > 0"))
                .isEqualTo(1);
        assertThat(OTHER.isTrue("SELECT to_regclass('pglock_lease') IS NULL")).isTrue();
    }

    static class Job {

        @RunOnce("tenants")
        void switchTenant() {
            LockContext.requireHeld("tenants");
            TENANT.set("other");
        }

        @RunOnce(name = "reads")
        @Transactional(readOnly = true)
        public Boolean readOnly() {
            return LockContext.current().isHeld() && TransactionSynchronizationManager.isCurrentTransactionReadOnly();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement(proxyTargetClass = true)
    static class Tenants extends Application {

        @Bean
        @Primary
        DataSource tenants(@Value("${spring.datasource.url}") String url, @Value("${other.url}") String other) {
            AbstractRoutingDataSource routing = new AbstractRoutingDataSource() {
                @Override
                protected Object determineCurrentLookupKey() {
                    return TENANT.get();
                }
            };
            routing.setTargetDataSources(Map.of("other", dataSource(other), "reads only", dataSource(other)));
            routing.setLenientFallback(false);
            return routing;
        }

        @Bean
        @PgLockDataSource
        DataSource locks(@Value("${spring.datasource.url}") String url) {
            return dataSource(url);
        }

        @Bean
        Job job() {
            return new Job();
        }

        private static DataSource dataSource(String url) {
            org.postgresql.ds.PGSimpleDataSource dataSource = new org.postgresql.ds.PGSimpleDataSource();
            dataSource.setUrl(url);
            dataSource.setUser(OTHER.username());
            dataSource.setPassword(OTHER.password());
            return dataSource;
        }
    }
}
