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
import java.util.Comparator;
import java.util.Objects;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;

/** Puts together the stores that the registry stands on. */
final class Stores {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

    private final PgLockSettings settings;
    private final ConnectionChoice choice;
    private final KeyDerivation keys;
    private final ReplicaIdentity identityOfReplica;
    private final ObjectProvider<LocalSpace> localSpace;

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
            LeaseTable table = leaseTable(connections, origin, timeouts);
            registry.store(new LeaseStore(
                    connections, identity, table, timeouts, properties.lease().retention()));
            SessionFactory sessions = origin.sessions(sessionSettings);
            if (sessions != null) {
                registry.store(advisory(identity, connections, sessions, table, timeouts, origin));
                if (properties.wakeUps()) {
                    registry.wakeUps(new NotifiedWakeUps(sessions));
                }
            } else if (usesAdvisory(properties)) {
                throw LockDatabaseException.advisoryNeedsOwnSession(origin.origin());
            }
            ready = true;
        } catch (UnsupportedDatabaseException e) {
            throw LockDatabaseException.unsupported(origin.origin(), e);
        } catch (LockStorageException e) {
            throw LockDatabaseException.unreachable(origin.origin(), e);
        } finally {
            if (!ready) {
                connections.close();
            }
        }
    }

    /** Advisory locks need no table: where they are the rule, none is created, and one that is there is used. */
    private LeaseTable leaseTable(ConnectionSource connections, LockConnections origin, JdbcTimeouts timeouts) {
        PgLockProperties.Lease lease = settings.properties().lease();
        SchemaMode mode = usesLease(settings.properties()) ? lease.initializeSchema() : SchemaMode.NEVER;
        if (mode == SchemaMode.NEVER) {
            probe(connections, origin.origin(), timeouts.work());
        }
        return new LeaseSchema(connections, LeaseTable.parse(lease.table())).initialize(mode);
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
        if (usesAdvisory(properties)) {
            probe(lockSessions, origin.origin());
        }
        return new AdvisoryStore(
                lockSessions,
                connections,
                identity,
                keys,
                new AdvisorySettings(
                        table, properties.leaseDuration(), properties.advisory().maxLocks(), timeouts));
    }

    static boolean usesLease(PgLockProperties properties) {
        return uses(properties, LockStrategy.LEASE);
    }

    private static boolean usesAdvisory(PgLockProperties properties) {
        return uses(properties, LockStrategy.ADVISORY);
    }

    private static boolean uses(PgLockProperties properties, LockStrategy strategy) {
        return properties.strategy() == strategy
                || properties.locks().stream().anyMatch(lock -> lock.strategy() == strategy)
                || properties.leader().values().stream().anyMatch(leader -> leader.strategy() == strategy);
    }

    /** What makes advisory locks worthless for good is told at start-up; a database that is away may come back. */
    private static void probe(LockSessions sessions, String origin) {
        try {
            sessions.probe();
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.READ_ONLY) {
                throw new UnsupportedDatabaseException(String.valueOf(e.getMessage()));
            }
            log.warn(
                    "The lock session ({}) could not be opened: {}. Nothing is locked, and no locked method runs, until"
                            + " it can",
                    origin,
                    e.getMessage());
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
