package dev.pglock.observability;

import io.micrometer.common.docs.KeyName;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;
import io.micrometer.observation.docs.ObservationDocumentation;

/** The observations. */
public enum LockObservation implements ObservationDocumentation {
    /** A body that runs under a lock, from the grant until the lock was given back. None for a skipped call. */
    EXECUTION {
        @Override
        public Class<? extends ObservationConvention<? extends Observation.Context>> getDefaultConvention() {
            return DefaultLockObservationConvention.class;
        }

        @Override
        public KeyName[] getLowCardinalityKeyNames() {
            return LowCardinality.values();
        }

        @Override
        public KeyName[] getHighCardinalityKeyNames() {
            return HighCardinality.values();
        }
    };

    /** Keys with few values: metrics have them too. */
    public enum LowCardinality implements KeyName {
        /** The lock as it was written in the source, or {@code other}. */
        LOCK {
            @Override
            public String asString() {
                return "lock";
            }
        },
        /** {@code lease}, {@code advisory} or {@code local}. */
        STRATEGY {
            @Override
            public String asString() {
                return "strategy";
            }
        },
        /** {@code succeeded}, {@code failed} or {@code lost}; {@code running} until it has ended. */
        OUTCOME {
            @Override
            public String asString() {
                return "outcome";
            }
        }
    }

    /** Keys with any number of values: only traces have them. */
    public enum HighCardinality implements KeyName {
        /** The lock's name as it was evaluated. */
        NAME {
            @Override
            public String asString() {
                return "pglock.name";
            }
        },
        /** The fencing token. */
        FENCE {
            @Override
            public String asString() {
                return "pglock.fence";
            }
        },
        /** For how many milliseconds the caller waited before. */
        WAITED {
            @Override
            public String asString() {
                return "pglock.waited.ms";
            }
        }
    }
}
