package dev.pglock.aop;

import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopInfrastructureBean;

/**
 * Tells a tick from a direct call. While a scheduler runs a task, its thread carries the firing; a locked method that the
 * task calls asks whether the firing is its own. An {@code @Async} method runs on another thread: for it the firing is laid
 * into a queue of that method and class before the task runs.
 */
final class Ticks implements AopInfrastructureBean {

    private static final int MOST_HANDED_OVER = 64;

    private static final ThreadLocal<@Nullable Firing> CURRENT = new ThreadLocal<>();
    private final ConcurrentMap<String, Queue<Firing>> handedOver = new ConcurrentHashMap<>();

    /** Which locks a task asks for, by the names of its method. */
    private final ConcurrentMap<String, Set<String>> locks = new ConcurrentHashMap<>();

    /** Learns of a scheduled method. */
    void expect(LockSpec spec) {
        if (spec.name().isConstant()) {
            spec.ticks()
                    .forEach(name -> locks.computeIfAbsent(name, task -> ConcurrentHashMap.newKeySet())
                            .add(spec.name().text()));
        }
    }

    /** The names of the locks that a task asks for, as far as they are known before it runs. */
    Set<String> locksOf(TaskMethod task) {
        return task.names().stream()
                .flatMap(name -> locks.getOrDefault(name, Set.of()).stream())
                .collect(Collectors.toSet());
    }

    /** Runs a scheduled task. */
    void run(Runnable task, Firing firing) {
        Queue<Firing> queue = handedOver.get(firing.task().key());
        if (queue != null) {
            queue.add(firing);
            if (queue.size() > MOST_HANDED_OVER) {
                // Somebody throws them away on their way: the eldest would make a later direct call look like a tick.
                Firing ignored = queue.poll();
            }
        }
        Firing outer = CURRENT.get();
        CURRENT.set(firing);
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            if (queue != null) {
                // Rejected by the executor, most likely: it will never arrive.
                boolean ignored = queue.remove(firing);
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
        Queue<Firing> queue = new ConcurrentLinkedQueue<>();
        keysOf(spec).forEach(key -> handedOver.putIfAbsent(key, queue));
    }

    /** Of a method that several classes inherit each class has its own: no worker must take what is another's. */
    private static Set<String> keysOf(LockSpec spec) {
        return MethodShapes.isOfInterfaces(spec.type())
                ? spec.ticks()
                : Set.of(TaskMethod.nameOf(spec.type(), spec.method()));
    }

    /** The firing that the call on this thread is, of that method; null: it is none. */
    @Nullable
    Firing of(LockSpec spec) {
        if (!spec.hasTicks()) {
            return null;
        }
        if (spec.async()) {
            for (String key : keysOf(spec)) {
                Queue<Firing> queue = handedOver.get(key);
                Firing firing = queue == null ? null : queue.poll();
                if (firing != null) {
                    return firing;
                }
            }
            return null;
        }
        Firing firing = CURRENT.get();
        return firing != null && firing.isFor(spec) ? firing : null;
    }
}
