package dev.pglock.autoconfigure;

import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.aop.LockMode;
import dev.pglock.aop.ScheduledMode;
import dev.pglock.aop.Verification;
import dev.pglock.lease.SchemaMode;
import dev.pglock.transaction.Fencing;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The configuration as it was written. It holds values only; what they may be is checked at start-up, when all of them
 * and their origins are known.
 *
 * @param enabled Whether annotated methods are locked. If not, they run on every replica, and the lock registry works in
 *     memory.
 * @param strategy How locks are kept.
 * @param namespace Part of the database's locks that this application sees: applications with different namespaces never
 *     exclude each other. By default the value of 'spring.application.name'.
 * @param instanceId Name of this replica for people who read logs and tables; ownership never rests on it. By default the
 *     name of the host.
 * @param leaseDuration How long a grant or a renewal is good for: the bound on the time until another replica takes over
 *     when the holder vanishes.
 * @param heartbeatInterval How often held locks are renewed, at most a third of the lease duration. By default a third
 *     of the time for which the shortest lease held is trusted.
 * @param waitTimeout How long a caller waits for a lock at most, everything included.
 * @param maxHold How long a body may run at most: after that its heartbeats stop and the lock is lost to it. By default
 *     there is no limit.
 * @param onLost What happens to a running body when its lock is lost.
 * @param wakeUps Whether a release wakes those who wait on other replicas, for which each of these keeps one more connection
 *     while it waits. If not, they poll, once a second in the end.
 * @param fencing Whether a transaction in a locked method commits only while its lease is held.
 * @param verification What happens at start-up when a method that should be locked cannot be.
 * @param aspectOrder Order of the lock advisor among other advisors. By default just outside of '@Transactional'.
 * @param scheduled Which scheduled methods are locked.
 * @param lease What concerns the strategy 'lease' only.
 * @param advisory What concerns advisory keys and the strategy 'advisory'.
 * @param datasource Connections that locks are kept by.
 * @param locks Settings of single locks. They win over the annotation, which wins over the defaults.
 * @param leader Roles, by name, of which one replica at a time is the leader. By default none.
 */
@ConfigurationProperties(prefix = "pglock", ignoreUnknownFields = false)
public record PgLockProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("lease") LockStrategy strategy,
        @Nullable String namespace,
        @Nullable String instanceId,
        @DefaultValue("30s") Duration leaseDuration,
        @Nullable Duration heartbeatInterval,
        @DefaultValue("30s") Duration waitTimeout,
        @Nullable Duration maxHold,
        @DefaultValue("interrupt") OnLost onLost,
        @DefaultValue("true") boolean wakeUps,
        @DefaultValue("auto") Fencing fencing,
        @DefaultValue("fail") Verification verification,
        @Nullable Integer aspectOrder,
        @DefaultValue Scheduled scheduled,
        @DefaultValue Lease lease,
        @DefaultValue Advisory advisory,
        @DefaultValue Datasource datasource,
        @DefaultValue List<Lock> locks,
        @DefaultValue Map<String, Leader> leader) {

    /**
     * Which scheduled methods are locked.
     *
     * @param mode Which scheduled methods are locked for being scheduled.
     * @param packages Comma-separated list of packages: with the mode 'all', only classes in them and below are locked.
     *     By default all.
     * @param everyReplica Comma-separated list of scheduled methods that run on every replica, such as
     *     'LocalCache.refresh'.
     * @param oncePerTick Whether each tick runs once over all replicas; otherwise scheduled methods merely never run at the
     *     same time.
     */
    public record Scheduled(
            @DefaultValue("all") ScheduledMode mode,
            @DefaultValue List<String> packages,
            @DefaultValue List<String> everyReplica,
            @DefaultValue("true") boolean oncePerTick) {}

    /**
     * What concerns the strategy 'lease' only.
     *
     * @param table Table that keeps the leases; may be qualified with a schema.
     * @param initializeSchema Whether the table is created or checked at start-up.
     * @param retention How long a free row that remembers nothing is kept; 0 keeps all for ever.
     */
    public record Lease(
            @DefaultValue("pglock_lease") String table,
            @DefaultValue("always") SchemaMode initializeSchema,
            @DefaultValue("7d") Duration retention) {}

    /**
     * What concerns advisory keys and the strategy 'advisory'.
     *
     * @param keyDerivation How a lock's name becomes its advisory key; all replicas must have the same.
     * @param maxLocks How many advisory locks this replica holds at most, keys that remember ticks included; the
     *     server's lock table is shared by everybody.
     */
    public record Advisory(
            @DefaultValue("sha256") KeyDerivationName keyDerivation,
            @DefaultValue("100") int maxLocks) {}

    /** Ways from a lock's name to its advisory key. */
    public enum KeyDerivationName {
        /** First 8 bytes, big-endian, of SHA-256, as gokit derives them. */
        SHA256,
        /** As SQLx for Rust derives them. */
        SQLX
    }

    /**
     * Connections that locks are kept by.
     *
     * @param url JDBC URL of the database that keeps the locks. By default that of the application's DataSource.
     * @param username Login user name of that database.
     * @param password Login password of that database.
     * @param poolSize Most connections that are open at a time, that of the heartbeat included.
     * @param shared Whether connections are borrowed from the application's pool instead of being opened beside it.
     */
    public record Datasource(
            @Nullable String url,
            @Nullable String username,
            @Nullable String password,
            @DefaultValue("2") int poolSize,
            @DefaultValue("false") boolean shared) {

        /** Leaves out the URL, which may hold a password too, and the credentials. */
        @Override
        public String toString() {
            return "Datasource[url=" + hidden(url) + ", username=" + hidden(username) + ", password=" + hidden(password)
                    + ", poolSize=" + poolSize + ", shared=" + shared + "]";
        }

        private static @Nullable String hidden(@Nullable String value) {
            return value == null ? null : "******";
        }
    }

    /**
     * Settings of one lock. What is not set is as the annotation or the caller says.
     *
     * @param name Name of the lock.
     * @param leaseDuration How long a grant or a renewal is good for.
     * @param waitTimeout How long a caller waits at most.
     * @param minHold How long the lock is kept at the least, counted from its grant.
     * @param maxHold How long a body may run at most.
     * @param onLost What happens to a running body when the lock is lost.
     * @param strategy How the lock is kept.
     * @param mode Whether annotated methods are locked, run on every replica, or do not run at all.
     */
    public record Lock(
            @Nullable String name,
            @Nullable Duration leaseDuration,
            @Nullable Duration waitTimeout,
            @Nullable Duration minHold,
            @Nullable Duration maxHold,
            @Nullable OnLost onLost,
            @Nullable LockStrategy strategy,
            @Nullable LockMode mode) {}

    /**
     * A role of which one replica at a time is the leader.
     *
     * @param name Name of the lock. By default 'leader:' and the role.
     * @param strategy How the lock is kept.
     * @param leaseDuration How long a grant or a renewal is good for.
     * @param autoStart Whether this replica stands for election when it has started.
     */
    public record Leader(
            @Nullable String name,
            @Nullable LockStrategy strategy,
            @Nullable Duration leaseDuration,
            @DefaultValue("true") boolean autoStart) {

        /**
         * A role with nothing set, which YAML writes as {@code billing: {}}. Found by the conversion service.
         *
         * @param written must be blank
         * @return the defaults
         */
        public static Leader valueOf(String written) {
            if (!written.isBlank()) {
                throw new IllegalArgumentException("A role has settings, such as 'strategy', but no value");
            }
            return new Leader(null, null, null, true);
        }
    }
}
