package dev.pglock.testing;

import dev.pglock.advisory.AdvisorySettings;
import dev.pglock.advisory.AdvisoryStore;
import dev.pglock.advisory.LockSessions;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseTable;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A database of its own, and the stores of replicas on it: advisory ones, and leases for the same names. */
public final class ReplicaStores implements AutoCloseable {

    public static final Duration LEASE = Duration.ofSeconds(2);
    public static final LeaseTable TABLE = LeaseTable.parse("public.pglock_lease");
    private static final int MAX_LOCKS = 2000;

    private final TestDatabase database;
    private final List<AutoCloseable> open = new CopyOnWriteArrayList<>();
    private LeaseTable table = TABLE;
    private String role;
    private String password;

    private ReplicaStores(TestDatabase database) {
        this.database = database;
        this.role = database.username();
        this.password = database.password();
    }

    /** From now on everything is done as a role whose password is its name. */
    public ReplicaStores as(String itsRole) {
        role = itsRole;
        password = itsRole;
        return this;
    }

    /** From now on the table is not named by its schema: it is found by the search path. */
    public ReplicaStores unqualified() {
        table = LeaseTable.parse(TABLE.name());
        return this;
    }

    public static ReplicaStores withTable() {
        ReplicaStores stores = withoutTable();
        stores.createTable();
        return stores;
    }

    public static ReplicaStores withoutTable() {
        return new ReplicaStores(PostgresServer.shared().newDatabase());
    }

    public static ReplicaStores withTable(TestDatabase database) {
        ReplicaStores stores = new ReplicaStores(database);
        stores.createTable();
        return stores;
    }

    public void createTable() {
        database.execute(LeaseSchema.ddl(TABLE));
    }

    public TestDatabase database() {
        return database;
    }

    public AdvisoryStore store(StoreIdentity identity) {
        return store(identity, database.url(), LEASE, MAX_LOCKS);
    }

    public AdvisoryStore store(StoreIdentity identity, TcpProxy proxy) {
        return store(identity, database.url(proxy), LEASE, MAX_LOCKS);
    }

    public AdvisoryStore store(StoreIdentity identity, String url, Duration lease, int maxLocks) {
        SessionFactory sessions = sessions(identity, url, lease);
        OwnConnections reads = new OwnConnections(sessions, 1);
        AdvisoryStore store = new AdvisoryStore(
                new LockSessions(sessions, lease),
                reads,
                identity,
                KeyDerivation.SHA256,
                new AdvisorySettings(table, lease, maxLocks, JdbcTimeouts.of(lease)));
        open.add(store);
        return store;
    }

    public LeaseStore lease(StoreIdentity identity) {
        return lease(identity, database.url(), LEASE, 5);
    }

    public LeaseStore lease(StoreIdentity identity, String url, Duration lease, int connections) {
        OwnConnections own = new OwnConnections(sessions(identity, url, lease), connections);
        LeaseStore store = new LeaseStore(own, identity, table, JdbcTimeouts.of(lease), Duration.ZERO);
        open.add(store);
        return store;
    }

    public SessionFactory sessions(StoreIdentity identity, String url, Duration lease) {
        return new SessionFactory(
                () -> ConnectionSpec.of(url, role, password),
                SessionSettings.of(identity.namespace(), identity.label(), JdbcTimeouts.of(lease)));
    }

    /** How many advisory keys are held in the database, by whomever. */
    public long keysHeld() {
        return database.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    }

    @Override
    public void close() throws Exception {
        for (AutoCloseable closeable : open) {
            closeable.close();
        }
        database.close();
    }
}
