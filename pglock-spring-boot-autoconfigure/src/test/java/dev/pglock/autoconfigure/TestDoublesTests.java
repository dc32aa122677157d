package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mockingDetails;
import static org.mockito.Mockito.timeout;
import static org.mockito.Mockito.verify;

import dev.pglock.LockContext;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.bean.override.mockito.MockitoBean;
import org.springframework.test.context.bean.override.mockito.MockitoSpyBean;

/** An application's own tests, which put mocks in the place of its scheduled beans. */
@DirtiesContext
@SpringBootTest(properties = {"spring.application.name=test", "pglock.strategy=local"})
class TestDoublesTests {

    static class Replaced {

        @Scheduled(fixedDelay = 50)
        public void tick() {}
    }

    static class Watched {

        @Scheduled(fixedDelay = 50)
        public void tick() {
            LockContext.requireHeld("Watched.tick");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    @Import({Replaced.class, Watched.class})
    @ImportAutoConfiguration({
        AopAutoConfiguration.class,
        TaskSchedulingAutoConfiguration.class,
        PgLockAutoConfiguration.class,
        PgLockInterceptionAutoConfiguration.class
    })
    static class Application {}

    @MockitoBean
    private Replaced replaced;

    @MockitoSpyBean
    private Watched watched;

    @Test
    void theContextStartsWithAMockAndASpyIsLocked() {
        assertThat(mockingDetails(replaced).isMock()).isTrue();
        verify(watched, timeout(5000).atLeastOnce()).tick();
        assertThat(mockingDetails(watched).getInvocations()).isNotEmpty();
    }
}
