package dev.pglock.test;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.support.SimpleTriggerContext;

/** When a task is due. Null: never again. */
interface Schedule {

    @Nullable
    Instant first(Instant start);

    @Nullable
    Instant next(Instant last);

    /** At one moment, so long after the start. */
    record Once(Duration delay) implements Schedule {

        @Override
        public Instant first(Instant start) {
            return start.plus(delay);
        }

        @Override
        public @Nullable Instant next(Instant last) {
            return null;
        }
    }

    /** First so long after the start, then for ever. */
    record Every(Duration delay, Duration period) implements Schedule {

        /** A period that is to be never again, as it is written for a task that runs at the start only. */
        private static final Duration NEVER = Duration.ofDays(3660);

        /** Of two firings at one moment the second would be due for ever. */
        private static final Duration LEAST = Duration.ofMillis(1);

        @Override
        public Instant first(Instant start) {
            return start.plus(delay);
        }

        @Override
        public @Nullable Instant next(Instant last) {
            if (period.compareTo(NEVER) > 0) {
                return null;
            }
            return last.plus(period.compareTo(LEAST) < 0 ? LEAST : period);
        }
    }

    /** As a trigger says that is asked by the scheduler's clock. */
    record Triggered(Trigger trigger, Clock clock) implements Schedule {

        @Override
        public @Nullable Instant first(Instant start) {
            return trigger.nextExecution(new SimpleTriggerContext(clock));
        }

        @Override
        public @Nullable Instant next(Instant last) {
            SimpleTriggerContext context = new SimpleTriggerContext(clock);
            context.update(last, last, last);
            return trigger.nextExecution(context);
        }
    }
}
