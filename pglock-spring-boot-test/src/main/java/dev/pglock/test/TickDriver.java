package dev.pglock.test;

import dev.pglock.local.LocalSpace;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;

/**
 * A scheduler whose time the test sets. What is due is fired when the test moves the clock, on the test's thread, in the
 * order of the fire times, and each firing sees its own fire time as the present. Nothing fires otherwise.
 *
 * <pre>{@code
 * ticks.startAt(Instant.parse("2030-01-01T00:00:00Z"));
 * ticks.advance(Duration.ofHours(3));        // fires what is due until 03:00, 03:00 included
 * ticks.fireAgain();                         // the same ticks on another replica's timer: skipped
 * }</pre>
 *
 * <p>Only schedules follow this clock, and pglock's memory of ticks with them; leases, waits and {@code minHold} go by
 * real time. A method with {@code @Async} is handed over to its executor, and its end is not waited for.
 *
 * <p>Thread-safe, but one thread at a time can move the clock, and no task can.
 */
public final class TickDriver implements TaskScheduler {

    private final MovableClock clock = new MovableClock(Instant.now().truncatedTo(ChronoUnit.SECONDS));
    private final LocalSpace space = new LocalSpace(clock);
    private final List<DrivenTask> tasks = new CopyOnWriteArrayList<>();
    private final ReentrantLock moving = new ReentrantLock();
    private List<DrivenTask> firedLast = List.of();

    TickDriver() {}

    LocalSpace space() {
        return space;
    }

    @Override
    public Clock getClock() {
        return clock;
    }

    /**
     * The present, as schedules see it. It begins as the real time, in whole seconds.
     *
     * @return the present
     */
    public Instant now() {
        return clock.instant();
    }

    /**
     * Begins anew: sets the clock, to earlier or later, without firing anything; all schedules start at that moment, and what
     * has run is forgotten. To be called at the begin of each test that shares its context with others.
     *
     * @param moment the new present
     * @throws IllegalStateException if a task calls it, or while another thread moves the clock
     */
    public void startAt(Instant moment) {
        begin();
        try {
            clock.set(moment);
            space.forget();
            firedLast = List.of();
            tasks.forEach(task -> task.startAt(moment));
        } finally {
            moving.unlock();
        }
    }

    /**
     * Moves the clock forward and fires whatever is due until then.
     *
     * @param by how far; zero fires what is due now
     * @return how many times tasks were fired, skipped ones included
     * @throws IllegalArgumentException if it is negative
     * @throws IllegalStateException if a task calls it, or while another thread moves the clock
     */
    public int advance(Duration by) {
        return advanceTo(now().plus(by));
    }

    /**
     * Moves the clock forward and fires whatever is due until then. What tasks throw is thrown when all have been fired; the
     * schedules go on.
     *
     * @param moment the new present
     * @return how many times tasks were fired, skipped ones included
     * @throws IllegalArgumentException if it lies in the past
     * @throws IllegalStateException if a task calls it, or while another thread moves the clock
     */
    public int advanceTo(Instant moment) {
        if (moment.isBefore(now())) {
            throw new IllegalArgumentException("The clock goes forward, from " + now() + ", and not to " + moment
                    + "; startAt begins anew at any time");
        }
        begin();
        try {
            List<DrivenTask> fired = new ArrayList<>();
            Failures failures = new Failures();
            for (Optional<DrivenTask> due = nextUntil(moment); due.isPresent(); due = nextUntil(moment)) {
                DrivenTask task = due.get();
                clock.set(task.due());
                failures.collect(task::run);
                task.ranAt(now());
                fired.add(task);
            }
            clock.set(moment);
            tasks.removeIf(DrivenTask::isDone);
            firedLast = fired.stream().distinct().toList();
            failures.rethrow();
            return fired.size();
        } finally {
            moving.unlock();
        }
    }

    /**
     * Fires once more what the last advance has fired, each task at its last tick and at its time, as the timer of another
     * replica does.
     *
     * @return how many times tasks were fired, skipped ones included
     * @throws IllegalStateException if a task calls it, or while another thread moves the clock
     */
    public int fireAgain() {
        begin();
        try {
            Instant present = now();
            Failures failures = new Failures();
            for (DrivenTask task : firedLast) {
                clock.set(task.fired());
                failures.collect(task::run);
            }
            clock.set(present);
            failures.rethrow();
            return firedLast.size();
        } finally {
            moving.unlock();
        }
    }

    private void begin() {
        if (moving.isHeldByCurrentThread() || !moving.tryLock()) {
            throw new IllegalStateException(
                    "The clock is being moved already: by another thread, or by the call that " + "fires this task");
        }
    }

    private Optional<DrivenTask> nextUntil(Instant moment) {
        return tasks.stream()
                .filter(task -> !task.isDone() && !task.due().isAfter(moment))
                .min(Comparator.comparing(DrivenTask::due));
    }

    @Override
    public @Nullable ScheduledFuture<?> schedule(Runnable task, Trigger trigger) {
        DrivenTask scheduled = add(new DrivenTask(task, new Schedule.Triggered(trigger, clock), clock));
        return scheduled.isDone() ? null : scheduled;
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, Instant startTime) {
        return add(new DrivenTask(task, new Schedule.Once(fromNow(startTime)), clock));
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Instant startTime, Duration period) {
        return add(new DrivenTask(task, new Schedule.Every(fromNow(startTime), period), clock));
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Duration period) {
        return scheduleAtFixedRate(task, now(), period);
    }

    /** No time passes while a task runs, so that a delay is a rate. */
    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Instant startTime, Duration delay) {
        return scheduleAtFixedRate(task, startTime, delay);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(Runnable task, Duration delay) {
        return scheduleAtFixedRate(task, now(), delay);
    }

    private DrivenTask add(DrivenTask task) {
        task.startAt(now());
        tasks.add(task);
        return task;
    }

    /** Spring reads real time for an initial delay; what is left of it counts from whatever the present is then. */
    private Duration fromNow(Instant startTime) {
        Duration delay = Duration.between(now(), startTime);
        return delay.isNegative() ? Duration.ZERO : delay;
    }

    private static final class MovableClock extends Clock {

        private volatile Instant now;

        MovableClock(Instant now) {
            this.now = now;
        }

        void set(Instant moment) {
            now = moment;
        }

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneId.systemDefault();
        }

        @Override
        public Clock withZone(ZoneId zone) {
            throw new UnsupportedOperationException("This clock is only read as a scheduler's");
        }
    }

    private static final class Failures {

        private @Nullable Throwable first;

        void collect(Runnable task) {
            try {
                task.run();
            } catch (RuntimeException | Error e) {
                if (first == null) {
                    first = e;
                } else {
                    first.addSuppressed(e);
                }
            }
        }

        void rethrow() {
            if (first instanceof Error error) {
                throw error;
            }
            if (first instanceof RuntimeException exception) {
                throw exception;
            }
        }
    }
}
