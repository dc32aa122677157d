package dev.pglock.aop;

import dev.pglock.Tick;
import java.time.Clock;
import java.time.Instant;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.TriggerContext;
import org.springframework.scheduling.support.CronTrigger;
import org.springframework.scheduling.support.SimpleTriggerContext;

/**
 * The application's trigger, as it is, except that each fire time is kept until the task fires: some schedulers ask for the
 * next one while the task has hardly begun on another thread.
 */
final class TickingTrigger implements Trigger {

    private final Trigger delegate;
    private final String name;
    private final Clock clock;
    private final Queue<Instant> due = new ConcurrentLinkedQueue<>();

    TickingTrigger(Trigger delegate, String name, Clock clock) {
        this.delegate = delegate;
        this.name = name;
        this.clock = clock;
    }

    @Override
    public @Nullable Instant nextExecution(TriggerContext context) {
        Instant next = delegate.nextExecution(context);
        if (next != null) {
            due.add(next);
        }
        return next;
    }

    /** The tick of the firing that has just begun. */
    Firing.FireTime fired() {
        Instant fireTime = due.poll();
        if (fireTime == null) {
            return Firing.FireTime.NONE;
        }
        return delegate instanceof CronTrigger cron
                ? method -> new Tick.Calendar(
                        TriggerNames.of(name, method), fireTime, clock, after -> next(cron, clock, after))
                : method -> new Tick.Moment(TriggerNames.of(name, method), fireTime);
    }

    /** A cron trigger is a pure function of the moment. */
    static @Nullable Instant next(CronTrigger cron, Clock clock, Instant after) {
        SimpleTriggerContext context = new SimpleTriggerContext(clock);
        context.update(after, after, after);
        return cron.nextExecution(context);
    }

    @Override
    public String toString() {
        return delegate.toString();
    }
}
