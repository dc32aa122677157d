package dev.pglock.autoconfigure;

import dev.pglock.LockStorageException;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.jdbc.UnsupportedDatabaseException;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseTable;
import dev.pglock.lease.SchemaMode;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Comparator;
import java.util.Objects;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Puts together the store of the configured strategy. */
final class Stores {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

    private final PgLockSettings settings;
    private final ConnectionChoice choice;

    Stores(PgLockSettings settings, ConnectionChoice choice) {
        this.settings = settings;
        this.choice = choice;
    }

    LockStore create() {
        StoreIdentity identity = StoreIdentity.random(settings.namespace(), settings.label());
        if (settings.isLocal()) {
            return new LocalStore(identity, new LocalSpace());
        }
        if (settings.isNamespaceGuessed()) {
            log.warn(
                    "Neither pglock.namespace nor spring.application.name is set: the namespace of the locks is '{}', and"
                            + " another application that sets neither shares it",
                    settings.namespace());
        }
        return lease(identity, choice.choose());
    }

    private LockStore lease(StoreIdentity identity, LockConnections origin) {
        PgLockProperties properties = settings.properties();
        JdbcTimeouts timeouts = JdbcTimeouts.of(shortestLease(properties));
        ConnectionSource connections = origin.open(
                SessionSettings.of(settings.namespace(), settings.label(), timeouts),
                properties.datasource().poolSize());
        boolean ready = false;
        try {
            if (properties.lease().initializeSchema() == SchemaMode.NEVER) {
                probe(connections, origin.origin(), timeouts.work());
            }
            LeaseTable table = new LeaseSchema(
                            connections, LeaseTable.parse(properties.lease().table()))
                    .initialize(properties.lease().initializeSchema());
            LockStore store = new LeaseStore(
                    connections, identity, table, timeouts, properties.lease().retention());
            ready = true;
            return store;
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
        return Stream.concat(
                        Stream.of(properties.leaseDuration()),
                        properties.locks().stream()
                                .map(PgLockProperties.Lock::leaseDuration)
                                .filter(Objects::nonNull))
                .min(Comparator.naturalOrder())
                .orElseThrow();
    }
}
