package dev.pglock.autoconfigure;

import dev.pglock.LockNames;
import dev.pglock.LockStrategy;
import dev.pglock.aop.LockMode;
import dev.pglock.aop.LockedMethodSettings;
import dev.pglock.engine.EngineSettings;
import dev.pglock.store.KeyDerivation;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/**
 * The configuration after it was checked, with what is computed filled in.
 *
 * @param properties as written
 * @param namespace in normal form
 * @param isNamespaceGuessed whether there was neither a namespace nor a name of the application
 * @param label this replica's name for people
 */
record PgLockSettings(PgLockProperties properties, String namespace, boolean isNamespaceGuessed, String label) {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

    static final String DEFAULT_NAMESPACE = "application";

    static PgLockSettings of(PgLockProperties properties, Environment environment) {
        new PropertyChecks(properties, Binder.get(environment)).run();
        String written = properties.namespace();
        String application =
                environment.getProperty("spring.application.name", "").strip();
        String namespace = written != null
                ? PropertyChecks.namespace("pglock.namespace", written)
                : PropertyChecks.namespace("spring.application.name", application);
        boolean guessed = written == null && namespace.isEmpty();
        if (!properties.enabled()) {
            log.info(
                    "Locks are switched off (pglock.enabled=false): annotated methods run unlocked on every replica, and"
                            + " the lock registry works in memory");
        }
        return new PgLockSettings(
                properties, guessed ? DEFAULT_NAMESPACE : namespace, guessed, label(properties.instanceId()));
    }

    private static String label(@Nullable String instanceId) {
        return instanceId == null || instanceId.isBlank() ? HostName.find() : instanceId;
    }

    /** In memory: what is disabled must work without a database. */
    boolean isLocal() {
        return !properties.enabled() || properties.strategy() == LockStrategy.LOCAL;
    }

    LockStrategy strategy() {
        return isLocal() ? LockStrategy.LOCAL : properties.strategy();
    }

    KeyDerivation keys() {
        return switch (properties.advisory().keyDerivation()) {
            case SHA256 -> KeyDerivation.SHA256;
            case SQLX -> KeyDerivation.SQLX;
        };
    }

    /** How locks are kept, in words. */
    String describe() {
        String how = switch (strategy()) {
            case LEASE -> "lease in table " + properties.lease().table();
            case ADVISORY -> "advisory keys on one session";
            case LOCAL -> "local memory";
        };
        return how + ", namespace '" + namespace + "', this replica is '" + label + "'";
    }

    EngineSettings engine() {
        return new EngineSettings(
                namespace,
                label,
                strategy(),
                properties.leaseDuration(),
                properties.heartbeatInterval(),
                properties.waitTimeout(),
                properties.maxHold(),
                properties.onLost());
    }

    LockedMethodSettings methods() {
        Map<String, LockMode> modes = new HashMap<>();
        for (PgLockProperties.Lock lock : properties.locks()) {
            if (lock.mode() != null) {
                modes.put(normalName(lock), lock.mode());
            }
        }
        return new LockedMethodSettings(
                properties.scheduled().mode(),
                properties.scheduled().packages(),
                properties.scheduled().everyReplica(),
                properties.scheduled().oncePerTick(),
                Map.copyOf(modes),
                properties.verification(),
                strategy(),
                properties.leaseDuration(),
                properties.heartbeatInterval(),
                properties.aspectOrder());
    }

    /** What configuration says of single locks, by name. */
    Map<String, PgLockProperties.Lock> locks() {
        Map<String, PgLockProperties.Lock> locks = new HashMap<>();
        properties.locks().forEach(lock -> locks.put(normalName(lock), lock));
        return Map.copyOf(locks);
    }

    /** Whether a lock of that name is the one of a role. */
    boolean isRole(String lockName) {
        return properties.leader().entrySet().stream()
                .anyMatch(entry -> LockNames.normalise(LeaderRoles.lockName(entry.getKey(), entry.getValue()))
                        .equals(lockName));
    }

    private static String normalName(PgLockProperties.Lock lock) {
        return LockNames.normalise(lock.name() == null ? "" : lock.name());
    }
}
