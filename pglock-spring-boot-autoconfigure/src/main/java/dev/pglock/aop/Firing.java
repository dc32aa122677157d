package dev.pglock.aop;

import dev.pglock.Tick;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** One firing of one scheduled task. */
final class Firing {

    private final TaskMethod task;
    private final FireTime fireTime;
    private final AtomicReference<@Nullable Method> owner = new AtomicReference<>();
    private final Set<String> granted = ConcurrentHashMap.newKeySet();

    /** What a schedule knows of one firing. */
    @FunctionalInterface
    interface FireTime {

        /** A task that fires once in the life of a replica: no other replica has the same tick. */
        FireTime NONE = method -> null;

        /** No replica lives to see a second firing: {@code fixedDelay = Long.MAX_VALUE} means at the start. */
        Duration ONCE = Duration.ofDays(3660);

        static FireTime rate(String trigger, Duration period) {
            return period.compareTo(ONCE) > 0
                    ? NONE
                    : method -> new Tick.Rate(TriggerNames.of(trigger, method), period);
        }

        static FireTime delay(Duration delay) {
            return delay.compareTo(ONCE) > 0 ? NONE : method -> new Tick.Delay(delay);
        }

        /**
         * The tick of a locked method.
         *
         * @param method tells the methods apart that share a lock
         * @return null if there is none that could be remembered
         */
        @Nullable
        Tick tick(String method);
    }

    Firing(TaskMethod task, FireTime fireTime) {
        this.task = task;
        this.fireTime = fireTime;
    }

    TaskMethod task() {
        return task;
    }

    /**
     * A task made from a method says which; any other (a lambda that calls a bean, say, whatever it says of itself) is the
     * tick of the first locked method that it reaches.
     */
    boolean isFor(LockSpec spec) {
        if (task.names().stream().anyMatch(spec.ticks()::contains)) {
            return true;
        }
        return !task.isKnown()
                && (owner.compareAndSet(null, spec.method()) || spec.method().equals(owner.get()));
    }

    /**
     * The tick to ask for. None after a grant: whoever comes again with the same firing for the same lock, a retry say, has
     * been granted it himself.
     */
    @Nullable
    Tick tick(LockSpec spec, String lock) {
        return granted.contains(lock) ? null : fireTime.tick(spec.describe());
    }

    void granted(String lock) {
        granted.add(lock);
    }
}
