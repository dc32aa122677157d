package dev.pglock.aop;

import org.springframework.core.Ordered;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.SchedulingConfigurer;
import org.springframework.scheduling.config.ScheduledTaskRegistrar;

/**
 * Puts {@link TickingTaskScheduler} around whatever scheduler the application uses, after everybody else has chosen: who
 * replaced it would have no ticks, and short jobs run on all replicas. {@link LockInterceptionConfiguration} makes it the
 * last of its order.
 */
final class TickingConfigurer implements SchedulingConfigurer, Ordered {

    private final Ticks ticks;

    TickingConfigurer(Ticks ticks) {
        this.ticks = ticks;
    }

    @Override
    public void configureTasks(ScheduledTaskRegistrar registrar) {
        TaskScheduler scheduler = registrar.getScheduler();
        if (scheduler != null) {
            registrar.setTaskScheduler(new TickingTaskScheduler(scheduler, ticks));
        }
    }

    @Override
    public int getOrder() {
        return Ordered.LOWEST_PRECEDENCE;
    }
}
