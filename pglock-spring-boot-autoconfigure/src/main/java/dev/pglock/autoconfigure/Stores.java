package dev.pglock.autoconfigure;

import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.advisory.AdvisorySettings;
import dev.pglock.advisory.AdvisoryStore;
import dev.pglock.advisory.LockSessions;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.jdbc.UnsupportedDatabaseException;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseTable;
import dev.pglock.lease.SchemaMode;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;

/**
 * Puts together the stores that the registry stands on. What a strategy needs at start-up is done where configuration has
 * locks of it, and otherwise when a method is found to ask for it ({@link #prepare}).
 */
final class Stores {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

    private final PgLockSettings settings;
    private final ConnectionChoice choice;
    private final KeyDerivation keys;
    private final ReplicaIdentity identityOfReplica;
    private final ObjectProvider<LocalSpace> localSpace;

    /** What has not been done yet; empty before there is a registry on these stores. */
    private final Map<LockStrategy, Runnable> unprepared =
            Collections.synchronizedMap(new EnumMap<>(LockStrategy.class));

    private volatile boolean leasesOfMethods;

    /** @param localSpace a memory that an application in a test shares with others, or whose clock it sets */
    Stores(
            PgLockSettings settings,
            ConnectionChoice choice,
            KeyDerivation keys,
            ReplicaIdentity identityOfReplica,
            ObjectProvider<LocalSpace> localSpace) {
        this.localSpace = localSpace;
        this.identityOfReplica = identityOfReplica;
        this.settings = settings;
        this.choice = choice;
        this.keys = keys;
    }

    /** Those of the database share their connections and their holder. */
    void addTo(LockEngine.Builder registry) {
        registry.keys(keys);
        StoreIdentity identity = StoreIdentity.random(settings.namespace(), settings.label());
        if (settings.isLocal()) {
            LocalSpace space = localSpace.getIfAvailable(LocalSpace::new);
            registry.store(new LocalStore(identity, space)).wakeUps(space.wakeUps());
            return;
        }
        if (settings.isNamespaceGuessed()) {
            log.warn(
                    "Neither pglock.namespace nor spring.application.name is set: the namespace of the locks is '{}', and"
                            + " another application that sets neither shares it",
                    settings.namespace());
        }
        LockConnections connections = choice.choose();
        addFromDatabase(registry, identity, connections);
        identityOfReplica.foundDatabase(connections.database());
    }

    private void addFromDatabase(LockEngine.Builder registry, StoreIdentity identity, LockConnections origin) {
        PgLockProperties properties = settings.properties();
        JdbcTimeouts timeouts = JdbcTimeouts.of(shortestLease(properties));
        SessionSettings sessionSettings = SessionSettings.of(settings.namespace(), settings.label(), timeouts);
        ConnectionSource connections =
                origin.open(sessionSettings, properties.datasource().poolSize());
        boolean ready = false;
        try {
            LeaseTable table = translated(origin, () -> leaseTable(connections, origin, timeouts));
            registry.store(new LeaseStore(
                    connections, identity, table, timeouts, properties.lease().retention()));
            SessionFactory sessions = origin.sessions(sessionSettings);
            if (sessions == null) {
                prepare(LockStrategy.ADVISORY, () -> {
                    throw LockDatabaseException.advisoryNeedsOwnSession(origin.origin());
                });
            } else {
                registry.store(advisory(identity, connections, sessions, table, timeouts, origin));
                if (properties.wakeUps()) {
                    registry.wakeUps(new NotifiedWakeUps(sessions));
                }
            }
            ready = true;
        } finally {
            if (!ready) {
                connections.close();
            }
        }
    }

    /**
     * Does what these strategies need at start-up, unless it is done. Blocks for the database.
     *
     * @param strategies those that methods ask for
     * @throws LockDatabaseException if one of them cannot work here; the message says what to do
     */
    void prepare(Set<LockStrategy> strategies) {
        leasesOfMethods |= strategies.contains(LockStrategy.LEASE);
        for (LockStrategy strategy : strategies) {
            Runnable preparation = unprepared.remove(strategy);
            if (preparation != null) {
                preparation.run();
            }
        }
    }

    /** Whether configuration or a method asks for leases. */
    boolean isAskedForLeases() {
        return leasesOfMethods || usesLease(settings.properties());
    }

    private void prepare(LockStrategy strategy, Runnable preparation) {
        if (uses(settings.properties(), strategy)) {
            preparation.run();
        } else {
            unprepared.put(strategy, preparation);
        }
    }

    /** With the database's name, and what to do. */
    private static <T> T translated(LockConnections origin, Supplier<T> work) {
        try {
            return work.get();
        } catch (UnsupportedDatabaseException e) {
            throw LockDatabaseException.unsupported(origin.origin(), e);
        } catch (LockStorageException e) {
            throw LockDatabaseException.unreachable(origin.origin(), e);
        }
    }

    /** Advisory locks need no table: where they are the rule, none is created, and one that is there is used. */
    private LeaseTable leaseTable(ConnectionSource connections, LockConnections origin, JdbcTimeouts timeouts) {
        PgLockProperties.Lease lease = settings.properties().lease();
        LeaseSchema schema = new LeaseSchema(connections, LeaseTable.parse(lease.table()));
        boolean now = usesLease(settings.properties());
        if (!now) {
            unprepared.put(
                    LockStrategy.LEASE, () -> translated(origin, () -> schema.initialize(lease.initializeSchema())));
        }
        SchemaMode mode = now ? lease.initializeSchema() : SchemaMode.NEVER;
        if (mode == SchemaMode.NEVER) {
            probe(connections, origin.origin(), timeouts.work());
        }
        return schema.initialize(mode);
    }

    private LockStore advisory(
            StoreIdentity identity,
            ConnectionSource connections,
            SessionFactory sessions,
            LeaseTable table,
            JdbcTimeouts timeouts,
            LockConnections origin) {
        PgLockProperties properties = settings.properties();
        LockSessions lockSessions = new LockSessions(sessions, properties.leaseDuration());
        prepare(LockStrategy.ADVISORY, () -> translated(origin, () -> probe(lockSessions, origin.origin())));
        return new AdvisoryStore(
                lockSessions,
                connections,
                identity,
                keys,
                new AdvisorySettings(
                        table, properties.leaseDuration(), properties.advisory().maxLocks(), timeouts));
    }

    private static boolean usesLease(PgLockProperties properties) {
        return uses(properties, LockStrategy.LEASE);
    }

    private static boolean uses(PgLockProperties properties, LockStrategy strategy) {
        return properties.strategy() == strategy
                || properties.locks().stream().anyMatch(lock -> lock.strategy() == strategy)
                || properties.leader().values().stream().anyMatch(leader -> leader.strategy() == strategy);
    }

    /** What makes advisory locks worthless for good is told at start-up; a database that is away may come back. */
    private static boolean probe(LockSessions sessions, String origin) {
        try {
            sessions.probe();
            return true;
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.READ_ONLY) {
                throw new UnsupportedDatabaseException(String.valueOf(e.getMessage()));
            }
            log.warn(
                    "The lock session ({}) could not be opened: {}. Nothing is locked, and no locked method runs, until"
                            + " it can",
                    origin,
                    e.getMessage());
            return false;
        }
    }

    /** A database that is away may come back; one that is no PostgreSQL will never be one. */
    private static void probe(ConnectionSource connections, String origin, Duration budget) {
        try {
            boolean ignored = connections.run(ConnectionSource.Lane.WORK, budget, (connection, unanswered) -> true);
        } catch (SQLException e) {
            log.warn(
                    "The database of the locks ({}) cannot be reached: {}. Nothing is locked, and no locked method runs,"
                            + " until it is back",
                    origin,
                    LockDatabaseException.driversWords(e));
        }
    }

    /** Of those that are configured; all timeouts follow from it. */
    private static Duration shortestLease(PgLockProperties properties) {
        return Stream.of(
                        Stream.of(properties.leaseDuration()),
                        properties.locks().stream().map(PgLockProperties.Lock::leaseDuration),
                        properties.leader().values().stream().map(PgLockProperties.Leader::leaseDuration))
                .flatMap(leases -> leases.filter(Objects::nonNull))
                .min(Comparator.naturalOrder())
                .orElseThrow();
    }
}
