package dev.pglock.autoconfigure;

import dev.pglock.LockObserver;
import dev.pglock.observability.DefaultLockObservationConvention;
import dev.pglock.observability.LockObservationConvention;
import dev.pglock.observability.ObservedLocks;
import io.micrometer.observation.ObservationRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.util.function.SingletonSupplier;

/** Auto-configuration of observations of what runs under locks, where the application has an observation registry. */
@AutoConfiguration(
        after = PgLockAutoConfiguration.class,
        afterName = "org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration")
@ConditionalOnClass(ObservationRegistry.class)
@ConditionalOnBean(ObservationRegistry.class)
public final class PgLockObservationAutoConfiguration {

    PgLockObservationAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean(LockObserver.class)
    ObservedLocks pgLockObservedLocks(
            ObjectProvider<ObservationRegistry> registry, ObjectProvider<LockObservationConvention> convention) {
        return new ObservedLocks(
                SingletonSupplier.of(() -> registry.getIfUnique(() -> ObservationRegistry.NOOP)),
                SingletonSupplier.of(() -> convention.getIfAvailable(DefaultLockObservationConvention::new)));
    }
}
