package dev.pglock.observability;

import static dev.pglock.observability.LockTags.lower;

import dev.pglock.Acquisition;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.StoreStatus;
import dev.pglock.TenureEnd;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.Meter.MeterProvider;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The meters {@code pglock.*}, fed by what a lock registry tells. Whatever happens before they are bound to a meter registry
 * is not counted. Thread-safe; nothing here blocks.
 */
public final class LockMetrics implements LockListener, MeterBinder {

    private static final Duration SHORTEST_HOLD = Duration.ofMillis(1);
    private static final Duration LONGEST_HOLD = Duration.ofMinutes(10);

    private final Supplier<List<StoreStatus>> status;
    private final LockTags tags = new LockTags();
    private final List<Meters> bound = new CopyOnWriteArrayList<>();

    /** Each as long as it lasts. */
    private final Map<LockHandle, Hold> held = new ConcurrentHashMap<>();

    /**
     * Creates them.
     *
     * @param status how the locks are, from memory; empty while nobody has asked for any
     */
    public LockMetrics(Supplier<List<StoreStatus>> status) {
        this.status = status;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        bound.add(new Meters(registry));
    }

    @Override
    public void settled(Acquisition acquisition) {
        Tags which = tags(tags.of(acquisition.request()), acquisition.strategy());
        Tags all = which.and("outcome", lower(acquisition.outcome()));
        boolean waited = acquisition.waited() && acquisition.outcome() != Acquisition.Outcome.HELD;
        for (Meters meters : bound) {
            meters.acquire.withTags(all).record(acquisition.took());
            if (waited) {
                meters.wait.withTags(all).record(acquisition.took());
            }
        }
    }

    @Override
    public void acquired(LockHandle lock) {
        Tags which = tags(lock);
        held.put(
                lock,
                new Hold(
                        System.nanoTime(),
                        bound.stream()
                                .map(meters -> meters.active.withTags(which).start())
                                .toList()));
        bound.forEach(meters -> meters.gauge(lock.strategy()));
    }

    @Override
    public void lost(LockHandle lock, LossReason reason) {
        Tags which = tags(lock);
        bound.forEach(meters ->
                meters.lost.withTags(which.and("reason", lower(reason))).increment());
        held(lock, which.and("outcome", "lost"));
    }

    @Override
    public void ended(LockHandle lock, TenureEnd end) {
        Tags which = tags(lock);
        held(lock, which.and("outcome", lower(end.outcome())));
        bound.forEach(meters -> meters.release
                .withTags(which.and("outcome", lower(end.release())))
                .record(end.releaseTook()));
    }

    /** A loss ends the hold, whenever its body ends: what comes first counts. */
    private void held(LockHandle lock, Tags all) {
        Hold hold = held.remove(lock);
        if (hold != null) {
            hold.samples().forEach(LongTaskTimer.Sample::stop);
            Duration lasted = Duration.ofNanos(System.nanoTime() - hold.since());
            bound.forEach(meters -> meters.hold.withTags(all).record(lasted));
        }
    }

    @Override
    public void heartbeat(LockStrategy strategy, boolean succeeded, Duration took) {
        Tags all = Tags.of("strategy", lower(strategy), "outcome", succeeded ? "succeeded" : "failed");
        bound.forEach(meters -> meters.heartbeat.withTags(all).record(took));
    }

    private Tags tags(LockHandle lock) {
        return tags(tags.of(lock), lock.strategy());
    }

    private static Tags tags(String lock, LockStrategy strategy) {
        return Tags.of("lock", lock, "strategy", lower(strategy));
    }

    private double heartbeatAge(LockStrategy strategy) {
        return status.get().stream()
                .filter(store -> store.strategy() == strategy)
                .map(StoreStatus::heartbeatAge)
                .mapToDouble(age -> age == null ? Double.NaN : age.toNanos())
                .findFirst()
                .orElse(Double.NaN);
    }

    /** What runs now. */
    private record Hold(long since, List<LongTaskTimer.Sample> samples) {}

    /** The meters in one registry. */
    private final class Meters {

        private final MeterRegistry registry;
        private final MeterProvider<Timer> acquire;
        private final MeterProvider<Timer> wait;
        private final MeterProvider<Timer> hold;
        private final MeterProvider<LongTaskTimer> active;
        private final MeterProvider<Timer> release;
        private final MeterProvider<Counter> lost;
        private final MeterProvider<Timer> heartbeat;
        private final Set<LockStrategy> gauges = ConcurrentHashMap.newKeySet();

        Meters(MeterRegistry registry) {
            this.registry = registry;
            acquire = Timer.builder("pglock.acquire")
                    .description("Calls for a lock, from the call until its end")
                    .withRegistry(registry);
            wait = Timer.builder("pglock.wait")
                    .description("Calls for a lock that had to wait, from the call until its end")
                    .withRegistry(registry);
            hold = Timer.builder("pglock.hold")
                    .description("Locks held, from the grant until they were given back or lost")
                    .minimumExpectedValue(SHORTEST_HOLD)
                    .maximumExpectedValue(LONGEST_HOLD)
                    .withRegistry(registry);
            active = LongTaskTimer.builder("pglock.hold.active")
                    .description("Locks that are held now")
                    .minimumExpectedValue(SHORTEST_HOLD)
                    .maximumExpectedValue(LONGEST_HOLD)
                    .withRegistry(registry);
            release = Timer.builder("pglock.release")
                    .description("Releases of locks")
                    .withRegistry(registry);
            lost = Counter.builder("pglock.lost")
                    .description("Locks lost before they were released")
                    .withRegistry(registry);
            heartbeat = Timer.builder("pglock.heartbeat")
                    .description("Heartbeats: the renewal of all that a replica holds")
                    .withRegistry(registry);
        }

        void gauge(LockStrategy strategy) {
            if (!gauges.add(strategy)) {
                // Micrometer warns of a second registration.
                return;
            }
            TimeGauge ignored = TimeGauge.builder(
                            "pglock.heartbeat.age", () -> heartbeatAge(strategy), TimeUnit.NANOSECONDS)
                    .description("Time since the last heartbeat that succeeded, while something is held")
                    .tags("strategy", lower(strategy))
                    .strongReference(true)
                    .register(registry);
        }
    }
}
