package dev.pglock.autoconfigure;

import dev.pglock.LockListener;
import dev.pglock.LockObserver;
import dev.pglock.LockRegistry;
import dev.pglock.annotation.PgLockDataSource;
import dev.pglock.aop.LockedMethodSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.local.LocalSpace;
import dev.pglock.store.KeyDerivation;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceInitializationAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.sql.init.dependency.DatabaseInitializationDependencyConfigurer;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportRuntimeHints;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;

/**
 * Auto-configuration of the lock registry.
 *
 * <p>The registry is lazy: an application in which nothing is locked needs no database for it. It comes after whatever
 * initializes the database, so that a migration may create the table. No property decides which beans there are, so that
 * ahead-of-time processing can build once and configure later.
 */
@AutoConfiguration(after = {DataSourceAutoConfiguration.class, DataSourceInitializationAutoConfiguration.class})
@EnableConfigurationProperties(PgLockProperties.class)
@Import(DatabaseInitializationDependencyConfigurer.class)
@ImportRuntimeHints(PgLockRuntimeHints.class)
public final class PgLockAutoConfiguration {

    PgLockAutoConfiguration() {}

    @Bean
    static PgLockSettings pgLockSettings(PgLockProperties properties, Environment environment) {
        return PgLockSettings.of(properties, environment);
    }

    @Bean
    static LockedMethodSettings pgLockMethodSettings(PgLockSettings settings) {
        return settings.methods();
    }

    @Bean
    static ReplicaIdentity pgLockReplicaIdentity(PgLockSettings settings) {
        return new ReplicaIdentity(settings);
    }

    @Bean
    @Lazy
    Stores pgLockStores(
            PgLockSettings settings,
            ConfigurableListableBeanFactory beans,
            @PgLockDataSource ObjectProvider<DataSource> marked,
            ObjectProvider<DataSource> any,
            ObjectProvider<JdbcConnectionDetails> details,
            ObjectProvider<KeyDerivation> keyDerivation,
            ObjectProvider<LocalSpace> space,
            ReplicaIdentity identity) {
        ConnectionChoice connections =
                new ConnectionChoice(settings.properties().datasource(), beans, marked, any, details);
        return new Stores(settings, connections, keyDerivation.getIfAvailable(settings::keys), identity, space);
    }

    @Bean(destroyMethod = "close")
    @Lazy
    @ConditionalOnMissingBean(LockRegistry.class)
    LockEngine pgLockRegistry(
            PgLockSettings settings,
            Stores stores,
            ObjectProvider<LockListener> listeners,
            ObjectProvider<LockObserver> observer) {
        LockEngine.Builder registry = LockEngine.builder(settings.engine()).overrides(ConfiguredRequests.of(settings));
        stores.addTo(registry);
        listeners.orderedStream().forEach(registry::listener);
        observer.ifUnique(registry::observer);
        return registry.build();
    }

    @Bean
    LockEvents pgLockEvents(PgLockSettings settings, ApplicationEventPublisher publisher) {
        return new LockEvents(publisher, settings.label());
    }

    @Bean
    PgLockLifecycle pgLockLifecycle(PgLockSettings settings, ConfigurableApplicationContext context) {
        // The settings are asked for only so that they are checked before anything is verified or connected.
        return new PgLockLifecycle(context);
    }
}
