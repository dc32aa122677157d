package dev.pglock.aop;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ScheduledFuture;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.SchedulingAwareRunnable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;

/** The application's scheduler, as it is, except that each firing is known to be one. */
final class TickingTaskScheduler implements TaskScheduler {

    private final TaskScheduler delegate;
    private final Ticks ticks;

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
        return delegate.schedule(new Firing(task), trigger);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, Instant startTime) {
        return delegate.schedule(new Firing(task), startTime);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Instant startTime, Duration period) {
        return delegate.scheduleAtFixedRate(new Firing(task), startTime, period);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Duration period) {
        return delegate.scheduleAtFixedRate(new Firing(task), period);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Instant startTime, Duration delay) {
        return delegate.scheduleWithFixedDelay(new Firing(task), startTime, delay);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Duration delay) {
        return delegate.scheduleWithFixedDelay(new Firing(task), delay);
    }

    /** Keeps what Spring reads off a task: its qualifier picks the scheduler, its text names it in the endpoint. */
    private final class Firing implements SchedulingAwareRunnable {

        private final Runnable task;

        Firing(Runnable task) {
            this.task = task;
        }

        @Override
        public void run() {
            ticks.run(task);
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
