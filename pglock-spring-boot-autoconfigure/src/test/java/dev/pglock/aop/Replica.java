package dev.pglock.aop;

import dev.pglock.LockRegistry;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;

/** One replica: a Spring context with interception over a registry in memory that it shares with the others. */
final class Replica implements AutoCloseable {

    static final LockedMethodSettings DEFAULTS = new LockedMethodSettings(
            ScheduledMode.ALL,
            List.of(),
            List.of(),
            true,
            Map.of(),
            Verification.FAIL,
            LockStrategy.LOCAL,
            Duration.ofSeconds(2),
            Duration.ofMillis(300),
            null);

    private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    private final LockEngine engine;

    private Replica(LockEngine engine, LockedMethodSettings settings, Map<String, Object> properties) {
        this.engine = engine;
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("test", properties));
        context.registerBean(LockRegistry.class, () -> engine);
        context.registerBean(LockedMethodSettings.class, () -> settings);
        context.register(LockInterceptionConfiguration.class);
    }

    static Replica start(String label, LocalSpace space, Class<?>... configuration) {
        return start(label, space, DEFAULTS, Map.of(), configuration);
    }

    /** Starts it with verification, as the starter's life cycle does before the first tick. */
    static Replica start(
            String label,
            LocalSpace space,
            LockedMethodSettings settings,
            Map<String, Object> properties,
            Class<?>... configuration) {
        LockEngine engine = LockEngine.builder(EngineSettings.defaults("test", label, LockStrategy.LOCAL)
                        .withLease(Duration.ofSeconds(2), Duration.ofMillis(300)))
                .store(new LocalStore(StoreIdentity.random("test", label), space))
                .build();
        return start(engine, settings, properties, configuration);
    }

    /** Starts it over a registry of its own, which it closes. */
    static Replica start(
            LockEngine engine,
            LockedMethodSettings settings,
            Map<String, Object> properties,
            Class<?>... configuration) {
        Replica replica = new Replica(engine, settings, properties);
        try {
            replica.context.registerBean(VerifyAtStart.class);
            if (configuration.length > 0) {
                replica.context.register(configuration);
            }
            replica.context.refresh();
            return replica;
        } catch (RuntimeException e) {
            replica.close();
            throw e;
        }
    }

    <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    LockRegistry registry() {
        return engine;
    }

    /** Ends the beans, and the scheduler with its threads, while the registry goes on. */
    void closeContext() {
        context.close();
    }

    @Override
    public void close() {
        context.close();
        engine.close();
    }

    static final class VerifyAtStart implements org.springframework.context.SmartLifecycle {

        private final LockVerifier verifier;

        VerifyAtStart(LockVerifier verifier) {
            this.verifier = verifier;
        }

        @Override
        public void start() {
            verifier.verify();
        }

        @Override
        public void stop() {}

        @Override
        public boolean isRunning() {
            return false;
        }
    }
}
