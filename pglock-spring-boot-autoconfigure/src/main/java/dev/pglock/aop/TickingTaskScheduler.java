package dev.pglock.aop;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.SchedulingAwareRunnable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;

/** The application's scheduler, as it is, except that each firing is known to be one, and of which tick. */
final class TickingTaskScheduler implements TaskScheduler {

    private final TaskScheduler delegate;
    private final Ticks ticks;
    private final TriggerNames names = new TriggerNames();

    TickingTaskScheduler(TaskScheduler delegate, Ticks ticks) {
        this.delegate = delegate;
        this.ticks = ticks;
    }

    @Override
    public Clock getClock() {
        return delegate.getClock();
    }

    @Override
    public @Nullable ScheduledFuture<?> schedule(Runnable task, Trigger trigger) {
        return names.give(task, TriggerNames.of(trigger, getClock()), name -> {
            TickingTrigger ticking = new TickingTrigger(trigger, name);
            return delegate.schedule(new FiringTask(task, ticking::fired), ticking);
        });
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, Instant startTime) {
        return delegate.schedule(firing(task, Firing.FireTime.NONE), startTime);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Instant startTime, Duration period) {
        return names.give(
                task,
                TriggerNames.rate(period),
                name -> delegate.scheduleAtFixedRate(
                        firing(task, Firing.FireTime.rate(name, period)), startTime, period));
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Duration period) {
        return names.give(
                task,
                TriggerNames.rate(period),
                name -> delegate.scheduleAtFixedRate(firing(task, Firing.FireTime.rate(name, period)), period));
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Instant startTime, Duration delay) {
        return delegate.scheduleWithFixedDelay(firing(task, Firing.FireTime.delay(delay)), startTime, delay);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Duration delay) {
        return delegate.scheduleWithFixedDelay(firing(task, Firing.FireTime.delay(delay)), delay);
    }

    private Runnable firing(Runnable task, Firing.FireTime always) {
        return new FiringTask(task, () -> always);
    }

    /** Keeps what Spring reads off a task: its qualifier picks the scheduler, its text names it in the endpoint. */
    private final class FiringTask implements SchedulingAwareRunnable {

        private final Runnable task;
        private final TaskMethod method;
        private final Supplier<Firing.FireTime> fireTimes;

        FiringTask(Runnable task, Supplier<Firing.FireTime> fireTimes) {
            this.task = task;
            this.method = TaskMethod.of(task);
            this.fireTimes = fireTimes;
        }

        @Override
        public void run() {
            ticks.run(task, new Firing(method, fireTimes.get()));
        }

        @Override
        public boolean isLongLived() {
            return task instanceof SchedulingAwareRunnable aware && aware.isLongLived();
        }

        @Override
        public @Nullable String getQualifier() {
            return task instanceof SchedulingAwareRunnable aware ? aware.getQualifier() : null;
        }

        @Override
        public String toString() {
            return task.toString();
        }
    }
}
