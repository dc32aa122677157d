package dev.pglock.aop;

import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockedTask;
import java.time.Clock;
import java.util.concurrent.ScheduledFuture;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.Trigger;

/**
 * A task for a scheduler that is set up in code: each of its ticks runs on one replica, as a {@code @Scheduled} method
 * does. A tick is skipped when another replica runs it or has run it, and when the database could not be asked.
 *
 * <pre>{@code
 * OncePerTick.of(registry, LockRequest.of("invoices." + tenant), () -> send(tenant), new CronTrigger("0 0 3 * * *"))
 *         .scheduleWith(taskScheduler);
 * }</pre>
 *
 * Tasks of a {@code SchedulingConfigurer} that call locked methods need it not: their ticks are known.
 */
public final class OncePerTick implements Runnable {

    private final LockRegistry registry;
    private final LockRequest request;
    private final LockedTask task;
    private final TickingTrigger trigger;
    private final RefusedTicks refused = new RefusedTicks();

    private OncePerTick(LockRegistry registry, LockRequest request, LockedTask task, TickingTrigger trigger) {
        this.registry = registry;
        this.request = request;
        this.task = task;
        this.trigger = trigger;
    }

    /**
     * Locks a task.
     *
     * @param registry takes the lock
     * @param request which lock, and how; tasks of one lock with equal triggers have the same ticks
     * @param task runs on the scheduler's thread, under the lock
     * @param trigger when it fires: a cron trigger, a periodic one, or one of your own that computes the same fire times on
     *     every replica
     * @return the task, to be scheduled with {@link #trigger()} and no other
     */
    public static OncePerTick of(LockRegistry registry, LockRequest request, LockedTask task, Trigger trigger) {
        String name = TriggerNames.of(trigger, Clock.systemUTC());
        return new OncePerTick(registry, request, task, new TickingTrigger(trigger, name));
    }

    /**
     * The trigger to schedule the task with: the one given, which now tells the task its fire times.
     *
     * @return the trigger
     */
    public Trigger trigger() {
        return trigger;
    }

    /**
     * Schedules the task.
     *
     * @param scheduler fires it
     * @return as the scheduler returned it; null if the trigger never fires
     */
    public @Nullable ScheduledFuture<?> scheduleWith(TaskScheduler scheduler) {
        return scheduler.schedule(this, trigger);
    }

    /** Runs the task if this firing is its tick's first. To be called by the scheduler. */
    @Override
    public void run() {
        LockAttempt attempt;
        try {
            attempt = registry.attempt(request, trigger.fired().tick(request.name()));
        } catch (LockStorageException e) {
            refused.skipped(request, "'" + request.name() + "'", e);
            return;
        }
        if (attempt instanceof LockAttempt.Granted granted) {
            refused.granted(request);
            runUnder(granted.lock());
        }
    }

    /** {@code execute} allows a null result; NullAway does not see that bound in a class file on JDK 17. */
    @SuppressWarnings("NullAway")
    private void runUnder(LockHandle lock) {
        lock.execute(() -> {
            task.run();
            return null;
        });
    }

    @Override
    public String toString() {
        return request.name();
    }
}
