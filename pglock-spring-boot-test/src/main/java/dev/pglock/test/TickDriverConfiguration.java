package dev.pglock.test;

import dev.pglock.local.LocalSpace;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.DeferredImportSelector;
import org.springframework.context.annotation.Primary;
import org.springframework.core.Ordered;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.scheduling.annotation.SchedulingConfigurer;

/** The scheduler of everything that is scheduled, whatever schedulers the application has. */
@Configuration(proxyBeanMethods = false)
class TickDriverConfiguration {

    TickDriverConfiguration() {}

    @Bean
    @Primary
    static TickDriver pgLockTickDriver() {
        return new TickDriver();
    }

    /** Unordered, like those of most applications, which come first because they were there first. */
    @Bean
    static SchedulingConfigurer pgLockTickDriverConfigurer(TickDriver driver) {
        return registrar -> registrar.setTaskScheduler(driver);
    }

    @Bean
    static LocalSpace pgLockLocalSpace(TickDriver driver) {
        return driver.space();
    }

    /** After the application's own beans, and before those of auto-configuration, which may put something around it. */
    static final class Selector implements DeferredImportSelector, Ordered {

        Selector() {}

        @Override
        public String[] selectImports(AnnotationMetadata importing) {
            return new String[] {TickDriverConfiguration.class.getName()};
        }

        @Override
        public int getOrder() {
            return Ordered.LOWEST_PRECEDENCE - 100;
        }
    }
}
