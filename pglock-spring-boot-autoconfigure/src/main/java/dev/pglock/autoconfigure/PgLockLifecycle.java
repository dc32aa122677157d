package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.aop.LockVerifier;
import dev.pglock.aop.LockedMethods;
import dev.pglock.engine.LockEngine;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.env.Environment;
import org.springframework.scheduling.concurrent.ExecutorConfigurationSupport;

/**
 * Starts before the schedulers and stops after them.
 *
 * <p>Stopping means: take no new locks, wait for the bodies that run, interrupt what is left. Releasing here would be
 * wrong: with virtual threads, or with a scheduler that awaits its tasks later, a body outlives this phase, and its lock
 * must outlive it too. Heartbeats go on until the registry is destroyed.
 */
final class PgLockLifecycle implements SmartLifecycle, ApplicationListener<ContextClosedEvent> {

    private static final Logger log = LoggerFactory.getLogger(PgLockLifecycle.class);

    private static final String TIMEOUT = "spring.lifecycle.timeout-per-shutdown-phase";
    private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);
    private static final Duration LONGEST_LAST_WAIT = Duration.ofSeconds(1);

    private final ConfigurableApplicationContext context;
    private final Duration timeout;

    private volatile boolean verified;
    private volatile boolean running;
    private volatile long closingSince;
    private volatile boolean closing;

    PgLockLifecycle(ConfigurableApplicationContext context) {
        this.context = context;
        // Not a property of our own: it is the time that the container grants to this phase.
        this.timeout = phaseTimeout(context.getEnvironment());
    }

    static Duration phaseTimeout(Environment environment) {
        return Binder.get(environment).bind(TIMEOUT, Duration.class).orElse(DEFAULT_TIMEOUT);
    }

    @Override
    public int getPhase() {
        return ExecutorConfigurationSupport.DEFAULT_PHASE - 1;
    }

    @Override
    public void start() {
        closing = false;
        if (!verified) {
            verify();
            verified = true;
        }
        engines().forEach(LockEngine::start);
        running = true;
    }

    /** Once: a start after a stop finds the same beans. */
    private void verify() {
        LockVerifier verifier = context.getBeanProvider(LockVerifier.class).getIfAvailable();
        if (verifier == null) {
            return;
        }
        LockedMethods methods = verifier.verify();
        PgLockSettings settings = context.getBean(PgLockSettings.class);
        warnOfUnusedEntries(settings, methods);
        if (!methods.isEmpty()) {
            // Now, and not at the first tick: what is wrong with the database is to be told at start-up.
            LockRegistry registry = context.getBeanProvider(LockRegistry.class).getObject();
            if (registry instanceof LockEngine engine) {
                context.getBean(Stores.class).prepare(strategies(methods, ConfiguredRequests.of(settings)));
                verifier.refuseWhatCannotBeAsked(methods, engine::check);
                verifier.refuseWhatIsForgotten(methods, request -> remembers(engine, request));
            }
        }
        if (!methods.isNothingFound()) {
            log.info("Locks by {}; {}", settings.describe(), methods.describe());
        }
    }

    /** What annotations ask for, unless configuration wins. */
    private static Set<LockStrategy> strategies(LockedMethods methods, UnaryOperator<LockRequest> configured) {
        return methods.requests().stream()
                .map(configured)
                .map(LockRequest::strategy)
                .filter(Objects::nonNull)
                .collect(Collectors.toSet());
    }

    /** A database that is away may come back, with its table: then the call tells. */
    private static boolean remembers(LockEngine engine, LockRequest request) {
        try {
            return engine.remembers(request);
        } catch (LockStorageException e) {
            log.debug("Whether versions are remembered could not be asked", e);
            return true;
        }
    }

    private static void warnOfUnusedEntries(PgLockSettings settings, LockedMethods methods) {
        PgLockProperties.Scheduled scheduled = settings.properties().scheduled();
        for (String name : scheduled.packages()) {
            if (!methods.isScheduledIn(name)) {
                log.warn(
                        "pglock.scheduled.packages has '{}', but no scheduled method is in that package: it locks none",
                        name);
            }
        }
        for (String name : scheduled.everyReplica()) {
            if (!methods.isScheduled(name)) {
                log.warn(
                        "pglock.scheduled.every-replica has '{}', but no scheduled method has that name: it opens none",
                        name);
            } else if (methods.isScheduledAndAnnotated(name)) {
                log.warn(
                        "pglock.scheduled.every-replica has '{}', but that method has @RunOnce or @Singleton too and stays"
                                + " locked: give its lock an entry in pglock.locks with the mode 'every-replica'",
                        name);
            }
        }
        new TreeMap<>(settings.locks()).forEach((name, lock) -> {
            if (!methods.include(name) && !settings.isRole(name)) {
                log.warn(
                        "pglock.locks has an entry for '{}', but no method has a lock of that name: it changes nothing"
                                + " unless a program takes the lock from LockRegistry{}",
                        name,
                        lock.mode() == null ? "" : ", and its mode never: that is for methods");
            }
        });
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public void onApplicationEvent(ContextClosedEvent event) {
        if (event.getApplicationContext() == context) {
            closingSince = System.nanoTime();
            closing = true;
        }
    }

    @Override
    public void stop() {
        stop(() -> {});
    }

    @Override
    public void stop(Runnable callback) {
        running = false;
        long since = closing ? closingSince : System.nanoTime();
        List<LockEngine> engines = engines();
        if (waitFor(engines, Duration.ZERO)) {
            callback.run();
            return;
        }
        Thread waiting = new Thread(
                () -> {
                    try {
                        drain(engines, since);
                    } finally {
                        callback.run();
                    }
                },
                "pglock-stop");
        waiting.setDaemon(true);
        waiting.start();
    }

    /** The schedulers, which stopped before, may have used up the time already. */
    private void drain(List<LockEngine> engines, long since) {
        Duration lastWait = min(timeout.dividedBy(4), LONGEST_LAST_WAIT);
        Duration grace = timeout.minus(lastWait).minusNanos(System.nanoTime() - since);
        if (!grace.isNegative() && waitFor(engines, grace)) {
            return;
        }
        engines.forEach(LockEngine::interruptBodies);
        if (!waitFor(engines, lastWait)) {
            log.warn(
                    "Locks are still held {} ms after the stop, by bodies that go on although they were interrupted or by"
                            + " handles that nobody has released: they are kept until then, or until their leases end",
                    timeout.toMillis());
        }
    }

    private static boolean waitFor(List<LockEngine> engines, Duration grace) {
        long deadline = System.nanoTime() + grace.toNanos();
        boolean idle = true;
        for (LockEngine engine : engines) {
            Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
            idle &= engine.stop(left);
        }
        return idle;
    }

    /** Those that exist by now: nobody's first lock is to be taken by a stop. */
    private List<LockEngine> engines() {
        ConfigurableListableBeanFactory beans = context.getBeanFactory();
        return Arrays.stream(beans.getBeanNamesForType(LockRegistry.class, false, false))
                .filter(beans::containsSingleton)
                .map(beans::getSingleton)
                .filter(LockEngine.class::isInstance)
                .map(LockEngine.class::cast)
                .toList();
    }

    private static Duration min(Duration one, Duration other) {
        return one.compareTo(other) <= 0 ? one : other;
    }
}
