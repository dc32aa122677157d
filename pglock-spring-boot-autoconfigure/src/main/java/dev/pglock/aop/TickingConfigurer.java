package dev.pglock.aop;

import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.core.PriorityOrdered;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.SchedulingConfigurer;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;

/**
 * Puts {@link TickingTaskScheduler} around whatever scheduler the application uses. What goes past it has no ticks, and short
 * jobs run on all replicas. So it comes before everybody else, because a configurer's {@code schedule…Task} schedules at
 * once; and after everybody else too, who may have chosen another scheduler, or put one around this.
 */
final class TickingConfigurer {

    private final Ticks ticks;
    private final TriggerNames names = new TriggerNames();
    private @Nullable TickingTaskScheduler first;

    TickingConfigurer(Ticks ticks) {
        this.ticks = ticks;
    }

    SchedulingConfigurer beforeAll() {
        return new BeforeAll();
    }

    /** {@link LockInterceptionConfiguration} makes it the last of its order. */
    SchedulingConfigurer afterAll() {
        return new AfterAll();
    }

    private final class BeforeAll implements SchedulingConfigurer, PriorityOrdered {

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            first = ticking(registrar);
        }

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }
    }

    private final class AfterAll implements SchedulingConfigurer, Ordered {

        @Override
        public void configureTasks(ScheduledTaskRegistrar registrar) {
            if (first == null) {
                first = ticking(registrar);
            } else if (registrar.getScheduler() != first) {
                first.stepAside();
                first = ticking(registrar);
            }
        }

        @Override
        public int getOrder() {
            return LOWEST_PRECEDENCE;
        }
    }

    private @Nullable TickingTaskScheduler ticking(ScheduledTaskRegistrar registrar) {
        TaskScheduler scheduler = registrar.getScheduler();
        if (scheduler == null) {
            return null;
        }
        TickingTaskScheduler ticking = new TickingTaskScheduler(scheduler, ticks, names);
        registrar.setTaskScheduler(ticking);
        return ticking;
    }
}
