package dev.pglock.observability;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/** How observations of bodies under locks are named. A bean of this type replaces {@link DefaultLockObservationConvention}. */
public interface LockObservationConvention extends ObservationConvention<LockObservationContext> {

    @Override
    default boolean supportsContext(Observation.Context context) {
        return context instanceof LockObservationContext;
    }
}
