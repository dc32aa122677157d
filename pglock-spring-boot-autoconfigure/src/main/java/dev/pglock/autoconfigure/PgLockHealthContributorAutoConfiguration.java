package dev.pglock.autoconfigure;

import dev.pglock.actuate.PgLockHealthIndicator;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/** Auto-configuration of the health {@code pglock}. */
@AutoConfiguration(after = PgLockAutoConfiguration.class)
@ConditionalOnClass({ConditionalOnEnabledHealthIndicator.class, HealthIndicator.class})
@ConditionalOnEnabledHealthIndicator("pglock")
public final class PgLockHealthContributorAutoConfiguration {

    PgLockHealthContributorAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean(name = {"pglockHealthIndicator", "pglockHealthContributor"})
    PgLockHealthIndicator pglockHealthIndicator(ReplicaIdentity identity, ConfigurableListableBeanFactory beans) {
        return new PgLockHealthIndicator(new LockStatus(beans), identity::describe);
    }
}
