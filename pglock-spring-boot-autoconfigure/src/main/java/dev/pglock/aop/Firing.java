package dev.pglock.aop;

import dev.pglock.Tick;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** One firing of one scheduled task. */
final class Firing {

    private final String description;
    private final FireTime fireTime;
    private final AtomicReference<@Nullable Method> owner = new AtomicReference<>();
    private final AtomicBoolean granted = new AtomicBoolean();

    /** What a schedule knows of one firing. */
    @FunctionalInterface
    interface FireTime {

        /** A task that fires once in the life of a replica: no other replica has the same tick. */
        FireTime NONE = method -> null;

        static FireTime rate(String trigger, Duration period) {
            return method -> new Tick.Rate(TriggerNames.of(trigger, method), period);
        }

        static FireTime delay(Duration delay) {
            return method -> new Tick.Delay(delay);
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

    Firing(String description, FireTime fireTime) {
        this.description = description;
        this.fireTime = fireTime;
    }

    String description() {
        return description;
    }

    /**
     * A task made from a method says which; any other (a lambda that calls a bean, say) is the tick of the first locked
     * method that it reaches.
     */
    boolean isFor(LockSpec spec) {
        if (spec.ticks().contains(description)) {
            return true;
        }
        return isAnonymous()
                && (owner.compareAndSet(null, spec.method()) || spec.method().equals(owner.get()));
    }

    private boolean isAnonymous() {
        return description.contains("$$Lambda") || description.contains("@");
    }

    /**
     * The tick to ask for. None after a grant: whoever comes again with the same firing, a retry say, has been granted it
     * himself.
     */
    @Nullable
    Tick tick(LockSpec spec) {
        return granted.get() ? null : fireTime.tick(spec.describe());
    }

    void granted() {
        granted.set(true);
    }
}
