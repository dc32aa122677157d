package dev.pglock.test;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One scheduled task, for whoever scheduled it. */
final class DrivenTask implements ScheduledFuture<Object> {

    private final Runnable task;
    private final Schedule schedule;
    private final Clock clock;
    private volatile @Nullable Instant due;
    private volatile @Nullable Instant fired;
    private volatile boolean cancelled;

    DrivenTask(Runnable task, Schedule schedule, Clock clock) {
        this.task = task;
        this.schedule = schedule;
        this.clock = clock;
    }

    void startAt(Instant moment) {
        due = schedule.first(moment);
    }

    void run() {
        task.run();
    }

    void ranAt(Instant moment) {
        fired = moment;
        due = schedule.next(moment);
    }

    /** When it was fired last. Not to be asked before. */
    Instant fired() {
        return Objects.requireNonNull(fired, "It has not been fired");
    }

    /** Not to be asked when it is done. */
    Instant due() {
        return Objects.requireNonNull(due, "It is done");
    }

    @Override
    public long getDelay(TimeUnit unit) {
        Instant next = due;
        return next == null ? 0 : unit.convert(Duration.between(clock.instant(), next));
    }

    @Override
    public int compareTo(Delayed other) {
        return Long.compare(getDelay(TimeUnit.NANOSECONDS), other.getDelay(TimeUnit.NANOSECONDS));
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean before = isDone();
        cancelled = true;
        return !before;
    }

    @Override
    public boolean isCancelled() {
        return cancelled;
    }

    @Override
    public boolean isDone() {
        return cancelled || due == null;
    }

    @Override
    public Object get() {
        throw new UnsupportedOperationException("A driven task has no result");
    }

    @Override
    public Object get(long timeout, TimeUnit unit) {
        return get();
    }

    @Override
    public String toString() {
        return task.toString();
    }
}
