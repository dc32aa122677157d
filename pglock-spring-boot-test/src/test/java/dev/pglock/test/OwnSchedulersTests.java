package dev.pglock.test;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.annotation.RunOnce;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.SchedulingConfigurer;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** A clock that is set, beside an application that has schedulers of its own. */
@SpringBootTest(classes = OwnSchedulersTests.Application.class)
@DrivenTicks
class OwnSchedulersTests {

    @EnableAutoConfiguration(exclude = DataSourceAutoConfiguration.class)
    @EnableScheduling
    static class Application {

        @Bean
        ThreadPoolTaskScheduler taskScheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        ThreadPoolTaskScheduler other() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        SchedulingConfigurer configurer(ThreadPoolTaskScheduler other) {
            return registrar -> registrar.setTaskScheduler(other);
        }

        @Bean
        Job job() {
            return new Job();
        }
    }

    static class Job {

        private final List<Thread> runs = new CopyOnWriteArrayList<>();

        @Scheduled(fixedRate = 60_000)
        @RunOnce("by default")
        public void byDefault() {
            runs.add(Thread.currentThread());
        }

        @Scheduled(fixedRate = 60_000, scheduler = "other")
        @RunOnce("by name")
        public void byName() {
            runs.add(Thread.currentThread());
        }

        public List<Thread> runs() {
            return runs;
        }
    }

    @Test
    void nothingFiresButByItsClockAndOncePerTick(@Autowired TickDriver ticks, @Autowired Job job) {
        ticks.startAt(ticks.now());
        assertThat(ticks.advance(Duration.ofMinutes(2))).isEqualTo(6);
        assertThat(ticks.fireAgain()).isEqualTo(2);
        assertThat(job.runs()).hasSize(6).containsOnly(Thread.currentThread());
    }
}
