package dev.pglock.aop;

import dev.pglock.Tick;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.TriggerContext;
import org.springframework.scheduling.support.CronTrigger;
import org.springframework.scheduling.support.PeriodicTrigger;
import org.springframework.scheduling.support.SimpleTriggerContext;

/**
 * The application's trigger, as it is, except that each fire time is kept until the task fires: some schedulers ask for the
 * next one while the task has hardly begun on another thread.
 */
final class TickingTrigger implements Trigger {

    /** Timers are early now and then. */
    private static final Duration EARLY = Duration.ofMillis(50);

    private final Trigger delegate;
    private final String name;
    private final ReentrantLock guard = new ReentrantLock();
    private final Deque<Due> due = new ArrayDeque<>();
    private @Nullable Due last;

    /** A fire time, by the clock of the scheduler that asked for it. */
    private record Due(Instant at, Clock clock) {

        boolean hasCome() {
            return !at.isAfter(clock.instant().plus(EARLY));
        }

        boolean isNearerThan(Due before) {
            Instant now = clock.instant();
            return Duration.between(now, at).compareTo(Duration.between(before.at, now)) < 0;
        }
    }

    TickingTrigger(Trigger delegate, String name) {
        this.delegate = delegate;
        this.name = name;
    }

    @Override
    public @Nullable Instant nextExecution(TriggerContext context) {
        Instant next = delegate.nextExecution(context);
        if (next != null) {
            guard.lock();
            try {
                if (context.lastScheduledExecution() == null) {
                    // Scheduled, maybe again: what an earlier schedule has not fired is none of this one's.
                    due.clear();
                    last = null;
                }
                due.add(new Due(next, context.getClock()));
            } finally {
                guard.unlock();
            }
        }
        return next;
    }

    /** The tick of the firing that has just begun. */
    Firing.FireTime fired() {
        if (delegate instanceof PeriodicTrigger periodic) {
            return periodic.isFixedRate()
                    ? Firing.FireTime.rate(name, periodic.getPeriodDuration())
                    : Firing.FireTime.delay(periodic.getPeriodDuration());
        }
        Due fired = lastDue();
        if (fired == null) {
            return Firing.FireTime.NONE;
        }
        return delegate instanceof CronTrigger cron
                ? method -> new Tick.Calendar(
                        TriggerNames.of(name, method),
                        fired.at(),
                        fired.clock(),
                        after -> next(cron, fired.clock(), after))
                : method -> new Tick.Moment(TriggerNames.of(name, method), fired.at());
    }

    /**
     * The last fire time that has come. A firing that a scheduler dropped must not leave all later ones with the fire time
     * before theirs, which has been run; and of two that are late, the second has no other tick than the first. Where none
     * has come since the last firing, this one is early: timers measure with a clock of their own, and the wall clock may
     * have been set back since they were set.
     */
    private @Nullable Due lastDue() {
        guard.lock();
        try {
            boolean early = true;
            for (Due next = due.peek(); next != null && (last == null || next.hasCome()); next = due.peek()) {
                last = due.remove();
                early = false;
            }
            Due next = due.peek();
            if (early && next != null && last != null && next.isNearerThan(last)) {
                last = due.remove();
            }
            return last;
        } finally {
            guard.unlock();
        }
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
