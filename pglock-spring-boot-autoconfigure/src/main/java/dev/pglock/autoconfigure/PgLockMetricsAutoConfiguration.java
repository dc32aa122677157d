package dev.pglock.autoconfigure;

import dev.pglock.observability.LockMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Auto-configuration of the meters {@code pglock.*}, where the application has a meter registry. */
@AutoConfiguration(
        after = PgLockAutoConfiguration.class,
        afterName = "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration")
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean(MeterRegistry.class)
public final class PgLockMetricsAutoConfiguration {

    PgLockMetricsAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    LockMetrics pgLockMetrics(ConfigurableListableBeanFactory beans) {
        return new LockMetrics(new LockStatus(beans));
    }
}
