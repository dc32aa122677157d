package dev.pglock.observability;

import dev.pglock.LockHandle;
import dev.pglock.LockObserver;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Observes each body that runs under a lock, so that traces show for how long it waited and held. Thread-safe. */
public final class ObservedLocks implements LockObserver {

    private final Supplier<ObservationRegistry> registry;
    private final Supplier<LockObservationConvention> convention;
    private final LockTags tags = new LockTags();

    /**
     * Creates it. Both are asked for at each body.
     *
     * @param registry where to observe
     * @param convention how to name, unless a global convention of the registry does it
     */
    public ObservedLocks(Supplier<ObservationRegistry> registry, Supplier<LockObservationConvention> convention) {
        this.registry = registry;
        this.convention = convention;
    }

    @Override
    public Running begin(LockHandle lock) {
        ObservationRegistry observations = registry.get();
        if (observations.isNoop()) {
            return Running.UNOBSERVED;
        }
        LockObservationContext context = new LockObservationContext(lock, tags.of(lock));
        Observation observation = LockObservation.EXECUTION
                .observation(null, convention.get(), () -> context, observations)
                .start();
        return new Body(context, observation, observation.openScope());
    }

    /** One body. Its scope is closed on the thread that opened it, the observation when all is over. */
    private record Body(LockObservationContext context, Observation observation, Observation.Scope scope)
            implements Running {

        @Override
        public void leaveThread() {
            scope.close();
        }

        @Override
        public void end(@Nullable Throwable failure, boolean lost) {
            context.end(lost);
            if (failure != null) {
                observation.error(failure);
            }
            observation.stop();
        }
    }
}
