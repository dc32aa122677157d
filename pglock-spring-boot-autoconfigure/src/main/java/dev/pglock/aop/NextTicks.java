package dev.pglock.aop;

import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.scheduling.config.ScheduledTask;
import org.springframework.scheduling.config.ScheduledTaskHolder;

/** When the locked methods of this replica are due next, as its own scheduler has it. Thread-safe; nothing here blocks. */
public final class NextTicks {

    private final ListableBeanFactory beans;
    private final Ticks ticks;

    NextTicks(ListableBeanFactory beans, Ticks ticks) {
        this.beans = beans;
        this.ticks = ticks;
    }

    /**
     * The next firing of each scheduled method whose lock has a name that is not evaluated.
     *
     * @return by lock name
     */
    public Map<String, Instant> byLock() {
        Map<String, Instant> next = new HashMap<>();
        beans.getBeansOfType(ScheduledTaskHolder.class, false, false).values().stream()
                .flatMap(holder -> holder.getScheduledTasks().stream())
                .forEach(task -> add(task, next));
        return next;
    }

    private void add(ScheduledTask task, Map<String, Instant> next) {
        Instant due = task.nextExecution();
        if (due == null) {
            return;
        }
        for (String lock : ticks.locksOf(TaskMethod.of(task.getTask().getRunnable()))) {
            next.merge(lock, due, (a, b) -> a.isBefore(b) ? a : b);
        }
    }
}
