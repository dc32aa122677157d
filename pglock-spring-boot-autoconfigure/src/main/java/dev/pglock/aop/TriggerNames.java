package dev.pglock.aop;

import dev.pglock.Tick;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.support.CronTrigger;
import org.springframework.scheduling.support.PeriodicTrigger;

/**
 * Names triggers so that all replicas agree, and so that another schedule has another name. Tasks of one method on beans
 * of one class with equal schedules are numbered in the order in which they are registered: which other beans there are must
 * not matter, because not every replica may have them. A task that was cancelled gives its number away.
 */
final class TriggerNames {

    private static final Instant WINTER = Instant.parse("2024-01-01T00:00:00Z");
    private static final Instant SUMMER = Instant.parse("2024-07-01T00:00:00Z");

    private final ReentrantLock guard = new ReentrantLock();
    private final Map<String, List<@Nullable Future<?>>> given = new HashMap<>();

    /** A trigger with its method: methods may share a lock. */
    static String of(String trigger, String method) {
        String name = trigger + " " + method;
        return name.length() <= Tick.MAX_TRIGGER_LENGTH
                ? name
                : UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8)).toString();
    }

    static String rate(Duration period) {
        return "rate " + period;
    }

    /** A cron trigger does not tell its zone, but what it makes of it. */
    static String of(Trigger trigger, Clock clock) {
        if (trigger instanceof CronTrigger cron) {
            return "cron " + cron.getExpression() + " from " + TickingTrigger.next(cron, clock, WINTER) + " and "
                    + TickingTrigger.next(cron, clock, SUMMER);
        }
        if (trigger instanceof PeriodicTrigger periodic && periodic.isFixedRate()) {
            return rate(periodic.getPeriodDuration());
        }
        return "trigger " + stable(trigger.getClass().getName());
    }

    /** Schedules a task under a name. */
    <F extends @Nullable Future<?>> F give(TaskMethod task, String trigger, Function<String, F> schedule) {
        guard.lock();
        try {
            List<@Nullable Future<?>> taken =
                    given.computeIfAbsent(trigger + " " + stable(task.key()), key -> new ArrayList<>());
            int number = 0;
            while (number < taken.size() && isScheduled(taken.get(number))) {
                number++;
            }
            F scheduled = schedule.apply(number == 0 ? trigger : trigger + " #" + (number + 1));
            if (number == taken.size()) {
                taken.add(scheduled);
            } else {
                taken.set(number, scheduled);
            }
            return scheduled;
        } finally {
            guard.unlock();
        }
    }

    private static boolean isScheduled(@Nullable Future<?> future) {
        return future != null && !future.isDone();
    }

    /** Without what differs between two processes: the number of a lambda, the hash of an object. */
    private static String stable(String text) {
        int lambda = text.indexOf("$$Lambda");
        int hash = text.indexOf('@');
        int end = lambda >= 0 ? lambda : hash >= 0 ? hash : text.length();
        return text.substring(0, end);
    }
}
