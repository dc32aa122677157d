package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Tells a tick from a direct call. While a scheduler runs a task, its thread carries the tick; a locked method that the
 * task calls asks whether the tick is its own. An {@code @Async} method runs on another thread: for it the tick is laid
 * into a queue of that method before the task runs.
 */
final class Ticks {

    private static final int MOST_HANDED_OVER = 64;

    private static final ThreadLocal<@Nullable Tick> CURRENT = new ThreadLocal<>();
    private final ConcurrentMap<String, Queue<Tick>> handedOver = new ConcurrentHashMap<>();

    /** One firing of one task. */
    private static final class Tick {

        private final String description;
        private final AtomicReference<@Nullable Method> owner = new AtomicReference<>();

        Tick(String description) {
            this.description = description;
        }

        /**
         * A task made from a method says which; any other (a lambda that calls a bean, say) is the tick of the first
         * locked method that it reaches.
         */
        boolean isFor(LockSpec spec) {
            if (spec.ticks().contains(description)) {
                return true;
            }
            return isAnonymous()
                    && (owner.compareAndSet(null, spec.method())
                            || spec.method().equals(owner.get()));
        }

        private boolean isAnonymous() {
            return description.contains("$$Lambda") || description.contains("@");
        }
    }

    /** Runs a scheduled task. */
    void run(Runnable task) {
        Tick tick = new Tick(task.toString());
        Queue<Tick> queue = handedOver.get(tick.description);
        if (queue != null) {
            queue.add(tick);
            if (queue.size() > MOST_HANDED_OVER) {
                // Somebody throws them away on their way: the eldest would make a later direct call look like a tick.
                Tick ignored = queue.poll();
            }
        }
        Tick outer = CURRENT.get();
        CURRENT.set(tick);
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            if (queue != null) {
                // Rejected by the executor, most likely: it will never arrive.
                boolean ignored = queue.remove(tick);
            }
            throw e;
        } finally {
            if (outer == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(outer);
            }
        }
    }

    /** Learns of a method whose ticks are handed to another thread. */
    void expectOnOtherThreads(LockSpec spec) {
        Queue<Tick> queue = new ConcurrentLinkedQueue<>();
        spec.ticks().forEach(description -> handedOver.putIfAbsent(description, queue));
    }

    /** Whether the call that runs on this thread is a tick of that method. */
    boolean isTickOf(LockSpec spec) {
        if (!spec.isScheduled()) {
            return false;
        }
        if (spec.async()) {
            for (String description : spec.ticks()) {
                Queue<Tick> queue = handedOver.get(description);
                if (queue != null && queue.poll() != null) {
                    return true;
                }
            }
            return false;
        }
        Tick tick = CURRENT.get();
        return tick != null && tick.isFor(spec);
    }
}
