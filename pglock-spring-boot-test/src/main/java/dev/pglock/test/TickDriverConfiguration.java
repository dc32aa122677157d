package dev.pglock.test;

import dev.pglock.local.LocalSpace;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;

/** The scheduler, under the name that Spring looks for where there are several. */
@Configuration(proxyBeanMethods = false)
class TickDriverConfiguration {

    TickDriverConfiguration() {}

    @Bean
    @Primary
    static TickDriver taskScheduler() {
        return new TickDriver();
    }

    @Bean
    static LocalSpace pgLockLocalSpace(TickDriver driver) {
        return driver.space();
    }
}
