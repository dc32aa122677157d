package dev.pglock.autoconfigure;

import dev.pglock.LeaderElection;
import dev.pglock.LockNames;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.lease.LeaseTable;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * Refuses what {@link PgLockProperties} must not be. It is called by a bean method: thrown from the constructor of the
 * properties, the same exception would be reported without the property's name. It repairs nothing, because a lease time
 * that is silently another one is another guarantee.
 */
final class PropertyChecks {

    private static final Duration LONGEST = LockRequest.GREATEST_DURATION;

    /** Keeps every sum of a duration and the server's time far from an overflow. */
    private static final Duration LONGEST_RETENTION = Duration.ofDays(36_500);

    private static final Pattern BARE_NUMBER = Pattern.compile("\\s*[-+]?\\d+\\s*");
    private static final Pattern PACKAGE =
            Pattern.compile("[\\p{L}_$][\\p{L}\\p{N}_$]*(?:\\.[\\p{L}_$][\\p{L}\\p{N}_$]*)*");

    private static final int LONGEST_INSTANCE_ID = 255;

    private final PgLockProperties properties;
    private final Binder binder;

    PropertyChecks(PgLockProperties properties, Binder binder) {
        this.properties = properties;
        this.binder = binder;
    }

    void run() {
        names();
        durations();
        scheduled();
        table(properties.lease().table());
        if (properties.advisory().maxLocks() < 1) {
            throw invalid("pglock.advisory.max-locks", properties.advisory().maxLocks(), "It must be at least 1.");
        }
        datasource(properties.datasource());
        locks(properties.locks());
        leader(properties.leader());
        modesOfRoles(properties.locks());
    }

    private void names() {
        resolved("pglock.namespace", properties.namespace());
        resolved("pglock.instance-id", properties.instanceId());
        if (properties.namespace() != null) {
            namespace("pglock.namespace", properties.namespace());
        }
        String instanceId = properties.instanceId();
        if (instanceId != null
                && (instanceId.length() > LONGEST_INSTANCE_ID
                        || instanceId.chars().anyMatch(Character::isISOControl))) {
            throw invalid(
                    "pglock.instance-id",
                    instanceId,
                    "It must have at most " + LONGEST_INSTANCE_ID + " characters, none of them a control character.");
        }
    }

    /** Brings a namespace to the form in which it is used everywhere. */
    static String namespace(String property, String namespace) {
        if (namespace.isEmpty()) {
            return namespace;
        }
        try {
            return LockNames.normalise(namespace);
        } catch (IllegalArgumentException e) {
            throw invalid(
                    property,
                    namespace.length() <= 2 * LockNames.MAX_LENGTH ? namespace : namespace.substring(0, 40) + "…",
                    "A namespace must have at most " + LockNames.MAX_LENGTH
                            + " characters, not all blank and none NUL; it may be empty.");
        }
    }

    private void durations() {
        lease("pglock.lease-duration", properties.leaseDuration());
        Duration heartbeat = properties.heartbeatInterval();
        if (heartbeat != null) {
            positive("pglock.heartbeat-interval", heartbeat);
            if (heartbeat.toMillis() < 1) {
                throw invalid("pglock.heartbeat-interval", heartbeat, "It must be at least 1 ms.");
            }
            if (heartbeat.multipliedBy(3).compareTo(properties.leaseDuration()) > 0) {
                throw invalid(
                        "pglock.heartbeat-interval",
                        heartbeat,
                        "At least three heartbeats must fit into 'pglock.lease-duration' ("
                                + millis(properties.leaseDuration()) + ").");
            }
        }
        notNegative("pglock.wait-timeout", properties.waitTimeout(), LONGEST);
        positive("pglock.max-hold", properties.maxHold());
        notNegative("pglock.lease.retention", properties.lease().retention(), LONGEST_RETENTION);
    }

    private void scheduled() {
        each(
                "pglock.scheduled.packages",
                properties.scheduled().packages(),
                PACKAGE,
                "It must be the name of a package.");
        each(
                "pglock.scheduled.every-replica",
                properties.scheduled().everyReplica(),
                Pattern.compile("(?s).*\\S.*"),
                "It must be the name of a method, such as 'LocalCache.refresh'.");
    }

    private static void each(String property, List<String> values, Pattern pattern, String reason) {
        for (int i = 0; i < values.size(); i++) {
            if (!pattern.matcher(values.get(i)).matches()) {
                throw invalid(property + "[" + i + "]", values.get(i), reason);
            }
        }
    }

    private static void table(String table) {
        try {
            var ignored = LeaseTable.parse(table);
        } catch (IllegalArgumentException e) {
            String message = String.valueOf(e.getMessage());
            throw invalid("pglock.lease.table", table, message.substring(message.lastIndexOf(": ") + 2) + ".");
        }
    }

    /** Never with the URL as the value: it may hold a password. */
    private static void datasource(PgLockProperties.Datasource datasource) {
        if (datasource.poolSize() < 1) {
            throw invalid("pglock.datasource.pool-size", datasource.poolSize(), "It must be at least 1.");
        }
        boolean hasUrl = hasText(datasource.url());
        if (hasUrl && datasource.shared()) {
            throw invalid(
                    "pglock.datasource.shared",
                    true,
                    "It borrows connections from the application, but 'pglock.datasource.url' asks for connections of"
                            + " its own. Set only one of the two.");
        }
        if (!hasUrl && (hasText(datasource.username()) || hasText(datasource.password()))) {
            throw invalid(
                    "pglock.datasource.url",
                    "",
                    "It must be set when 'pglock.datasource.username' or 'pglock.datasource.password' is set.");
        }
    }

    private void locks(List<PgLockProperties.Lock> locks) {
        Map<String, Integer> seen = new HashMap<>();
        for (int i = 0; i < locks.size(); i++) {
            PgLockProperties.Lock lock = locks.get(i);
            String prefix = "pglock.locks[" + i + "].";
            Integer first = seen.putIfAbsent(lockName(prefix + "name", lock.name()), i);
            if (first != null) {
                throw invalid(prefix + "name", lock.name(), "'pglock.locks[" + first + "]' has the same name.");
            }
            if (lock.leaseDuration() != null) {
                lease(prefix + "lease-duration", lock.leaseDuration());
            }
            notNegative(prefix + "wait-timeout", lock.waitTimeout(), LONGEST);
            positive(prefix + "min-hold", lock.minHold());
            positive(prefix + "max-hold", lock.maxHold());
            strategy(prefix, lock.strategy(), lock.leaseDuration());
        }
    }

    /**
     * As it was written: the name of a role may be one that no property name can have. Public, as is its constructor,
     * because {@code billing: {}} is converted by it.
     */
    public record WrittenLeader(@Nullable String leaseDuration) {}

    private void leader(Map<String, PgLockProperties.Leader> roles) {
        Map<String, String> seen = new HashMap<>();
        Map<String, WrittenLeader> written = roles.values().stream().allMatch(leader -> leader.leaseDuration() == null)
                ? Map.of()
                : binder.bind("pglock.leader", Bindable.mapOf(String.class, WrittenLeader.class))
                        .orElse(Map.of());
        roles.forEach((role, leader) -> {
            String prefix = "pglock.leader." + role + ".";
            String name = lockName(prefix + "name", LeaderRoles.lockName(role, leader));
            if (name.length() > LeaderElection.MAX_NAME_LENGTH) {
                throw invalid(
                        prefix + "name",
                        name,
                        "The name of a role's lock must have at most " + LeaderElection.MAX_NAME_LENGTH
                                + " characters.");
            }
            String first = seen.putIfAbsent(name, role);
            if (first != null) {
                throw invalid(prefix + "name", name, "'pglock.leader." + first + "' has the same lock.");
            }
            WrittenLeader asWritten = written.get(role);
            if (leader.leaseDuration() != null) {
                String property = prefix + "lease-duration";
                unit(property, asWritten == null ? null : asWritten.leaseDuration());
                leaseWithin(property, leader.leaseDuration());
            }
            strategy(prefix, leader.strategy(), leader.leaseDuration());
        });
    }

    /** A mode says what a method does whose lock it is; of a role nobody would heed it. */
    private void modesOfRoles(List<PgLockProperties.Lock> locks) {
        for (int i = 0; i < locks.size(); i++) {
            PgLockProperties.Lock lock = locks.get(i);
            String role = lock.mode() == null ? null : roleOf(LockNames.normalise(String.valueOf(lock.name())));
            if (role != null) {
                throw invalid(
                        "pglock.locks[" + i + "].mode",
                        lock.mode(),
                        "It is for locked methods, but '" + lock.name() + "' is the lock of the role '" + role
                                + "'. To keep this replica from leading, set 'pglock.leader." + role
                                + ".auto-start' to false.");
            }
        }
    }

    private @Nullable String roleOf(String lockName) {
        return properties.leader().entrySet().stream()
                .filter(entry -> LockNames.normalise(LeaderRoles.lockName(entry.getKey(), entry.getValue()))
                        .equals(lockName))
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse(null);
    }

    /** What holds for every lock with settings of its own. */
    private void strategy(String prefix, @Nullable LockStrategy written, @Nullable Duration leaseDuration) {
        if (written == LockStrategy.LOCAL && properties.strategy() != LockStrategy.LOCAL) {
            throw invalid(
                    prefix + "strategy",
                    "local",
                    "Locks in memory exclude nobody on another replica; 'pglock.strategy=local' has all of them"
                            + " in memory, for tests.");
        }
        LockStrategy strategy = written == null ? properties.strategy() : written;
        if (strategy == LockStrategy.ADVISORY && leaseDuration != null) {
            throw invalid(
                    prefix + "lease-duration",
                    leaseDuration,
                    "All advisory locks of a replica live on one session and have its lease, which is"
                            + " 'pglock.lease-duration'. Remove it, or set the strategy of this lock to 'lease'.");
        }
    }

    /** A placeholder without a value stays as it is written, and would become the name. */
    private static void resolved(String property, @Nullable String value) {
        if (value != null && value.contains("${")) {
            throw invalid(property, value, "It has a placeholder without a value.");
        }
    }

    private static String lockName(String property, @Nullable String name) {
        resolved(property, name);
        try {
            return LockNames.normalise(name == null ? "" : name);
        } catch (IllegalArgumentException e) {
            throw invalid(property, name, e.getMessage() + ".");
        }
    }

    private void lease(String property, Duration duration) {
        unit(property);
        leaseWithin(property, duration);
    }

    private static void leaseWithin(String property, Duration duration) {
        if (duration.compareTo(EngineSettings.LEAST_LEASE) < 0
                || duration.compareTo(EngineSettings.GREATEST_LEASE) > 0) {
            throw invalid(
                    property,
                    duration,
                    "It must be between " + millis(EngineSettings.LEAST_LEASE) + " and "
                            + EngineSettings.GREATEST_LEASE.toDays() + "d.");
        }
    }

    private void positive(String property, @Nullable Duration duration) {
        unit(property);
        if (duration != null && (duration.isZero() || duration.isNegative() || duration.compareTo(LONGEST) > 0)) {
            throw invalid(property, duration, "It must be positive and at most " + LONGEST.toDays() + "d.");
        }
    }

    private void notNegative(String property, @Nullable Duration duration, Duration longest) {
        unit(property);
        if (duration != null && (duration.isNegative() || duration.compareTo(longest) > 0)) {
            throw invalid(property, duration, "It must not be negative, and at most " + longest.toDays() + "d.");
        }
    }

    private void unit(String property) {
        unit(property, binder.bind(property, String.class).orElse(null));
    }

    /** In annotations as here: a bare number is read as seconds by one and as milliseconds by the other. */
    private static void unit(String property, @Nullable String text) {
        String written = text == null ? "" : text;
        if (BARE_NUMBER.matcher(written).matches() && !written.strip().matches("[-+]?0+")) {
            throw invalid(property, written, "It has no unit; write '30s' or '500ms', for instance.");
        }
    }

    private static boolean hasText(@Nullable String value) {
        return value != null && !value.isBlank();
    }

    private static String millis(Duration duration) {
        return duration.toMillis() % 1000 == 0 ? duration.toSeconds() + "s" : duration.toMillis() + "ms";
    }

    private static InvalidConfigurationPropertyValueException invalid(
            String property, @Nullable Object value, String reason) {
        return new InvalidConfigurationPropertyValueException(property, value, reason);
    }
}
