package dev.pglock.aop;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.scheduling.SchedulingAwareRunnable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;

/** The application's scheduler, as it is, except that each firing is known to be one, and of which tick. */
final class TickingTaskScheduler implements TaskScheduler {

    private static final Logger log = LoggerFactory.getLogger(TickingTaskScheduler.class);

    private final TaskScheduler delegate;
    private final Ticks ticks;
    private final TriggerNames names;
    private volatile boolean isAside;

    /** What was told: triggers with their methods, which are few. */
    private final Set<String> told = ConcurrentHashMap.newKeySet();

    TickingTaskScheduler(TaskScheduler delegate, Ticks ticks, TriggerNames names) {
        this.delegate = delegate;
        this.ticks = ticks;
        this.names = names;
    }

    /** From now on another one may stand around this: two of them would make two firings of one. */
    void stepAside() {
        isAside = true;
    }

    @Override
    public Clock getClock() {
        return delegate.getClock();
    }

    @Override
    public @Nullable ScheduledFuture<?> schedule(Runnable task, Trigger trigger) {
        if (isAside) {
            return delegate.schedule(task, trigger);
        }
        TaskMethod method = TaskMethod.of(task);
        String equal = TriggerNames.of(trigger, getClock());
        return names.give(method, equal, name -> {
            TickingTrigger ticking = new TickingTrigger(trigger, name);
            boolean byPosition = isByPosition(method, equal, name);
            return delegate.schedule(
                    new FiringTask(
                            task, method, () -> byPosition ? tellOfPosition(equal, ticking.fired()) : ticking.fired()),
                    ticking);
        });
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable task, Instant startTime) {
        return delegate.schedule(firing(task, Firing.FireTime.NONE), startTime);
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Instant startTime, Duration period) {
        return atRate(task, period, firing -> delegate.scheduleAtFixedRate(firing, startTime, period));
    }

    @Override
    public ScheduledFuture<?> scheduleAtFixedRate(Runnable task, Duration period) {
        return atRate(task, period, firing -> delegate.scheduleAtFixedRate(firing, period));
    }

    private ScheduledFuture<?> atRate(Runnable task, Duration period, Function<Runnable, ScheduledFuture<?>> schedule) {
        if (isAside) {
            return schedule.apply(task);
        }
        TaskMethod method = TaskMethod.of(task);
        String equal = TriggerNames.rate(period);
        return names.give(method, equal, name -> {
            Firing.FireTime rate = Firing.FireTime.rate(name, period);
            Firing.FireTime always = isByPosition(method, equal, name) ? tellOfPosition(equal, rate) : rate;
            return schedule.apply(new FiringTask(task, method, () -> always));
        });
    }

    /** A task that does not say what it is, a lambda say, has nothing but its number to be told from the next one. */
    private static boolean isByPosition(TaskMethod task, String equal, String name) {
        return !task.isKnown() && !name.equals(equal);
    }

    /** Only here it is known that such a task leads to a locked method. */
    private Firing.FireTime tellOfPosition(String equal, Firing.FireTime fireTime) {
        return method -> {
            if (told.add(equal + " " + method)) {
                log.warn(
                        "{} is called by several tasks with equal triggers that nothing tells apart: their ticks have numbers, in"
                                + " the order in which the tasks are registered, and that must be the same on all replicas and"
                                + " in the next release, or a tick runs twice. Use OncePerTick for such tasks, or triggers that"
                                + " differ",
                        method);
            }
            return fireTime.tick(method);
        };
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
        return isAside ? task : new FiringTask(task, TaskMethod.of(task), () -> always);
    }

    /** Keeps what Spring reads off a task: its qualifier picks the scheduler, its text names it in the endpoint. */
    private final class FiringTask implements SchedulingAwareRunnable {

        private final Runnable task;
        private final TaskMethod method;
        private final Supplier<Firing.FireTime> fireTimes;

        FiringTask(Runnable task, TaskMethod method, Supplier<Firing.FireTime> fireTimes) {
            this.task = task;
            this.method = method;
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
