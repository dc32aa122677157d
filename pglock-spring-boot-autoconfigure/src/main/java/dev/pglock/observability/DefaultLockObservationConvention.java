package dev.pglock.observability;

import dev.pglock.LockHandle;
import dev.pglock.observability.LockObservation.HighCardinality;
import dev.pglock.observability.LockObservation.LowCardinality;
import io.micrometer.common.KeyValues;

/** The names that observations have unless a bean says otherwise. */
public class DefaultLockObservationConvention implements LockObservationConvention {

    /** Creates it. */
    public DefaultLockObservationConvention() {}

    @Override
    public String getName() {
        return "pglock.execution";
    }

    @Override
    public String getContextualName(LockObservationContext context) {
        return "lock " + context.getLockTag();
    }

    @Override
    public KeyValues getLowCardinalityKeyValues(LockObservationContext context) {
        return KeyValues.of(
                LowCardinality.LOCK.withValue(context.getLockTag()),
                LowCardinality.STRATEGY.withValue(
                        LockTags.lower(context.getLock().strategy())),
                LowCardinality.OUTCOME.withValue(outcome(context)));
    }

    private static String outcome(LockObservationContext context) {
        if (!context.isEnded()) {
            return "running";
        }
        return context.isLost() ? "lost" : context.getError() == null ? "succeeded" : "failed";
    }

    @Override
    public KeyValues getHighCardinalityKeyValues(LockObservationContext context) {
        LockHandle lock = context.getLock();
        return KeyValues.of(
                HighCardinality.NAME.withValue(lock.name()),
                HighCardinality.FENCE.withValue(Long.toString(lock.fence())),
                HighCardinality.WAITED.withValue(Long.toString(lock.waited().toMillis())));
    }
}
