package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import dev.pglock.actuate.PgLockEndpoint;
import dev.pglock.aop.LockMode;
import dev.pglock.aop.LockedMethodSettings;
import dev.pglock.aop.NextTicks;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Auto-configuration of the endpoint {@code pglock}, where it is exposed. */
@AutoConfiguration(after = PgLockAutoConfiguration.class)
@ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
@ConditionalOnAvailableEndpoint(PgLockEndpoint.class)
public final class PgLockEndpointAutoConfiguration {

    PgLockEndpointAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    PgLockEndpoint pgLockEndpoint(
            ObjectProvider<LockRegistry> registry,
            ObjectProvider<NextTicks> nextTicks,
            ObjectProvider<LockedMethodSettings> settings) {
        return new PgLockEndpoint(
                registry::getObject,
                () -> {
                    NextTicks next = nextTicks.getIfAvailable();
                    return next == null ? Map.of() : next.byLock();
                },
                name -> {
                    LockedMethodSettings methods = settings.getIfAvailable();
                    return methods != null && methods.mode(name) == LockMode.PAUSED;
                });
    }
}
