package dev.pglock.lease;

import dev.pglock.Denial;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;

/** A database of its own with the lease table, and the stores of replicas on it. */
public final class LeaseStores implements AutoCloseable {

    public static final Duration LEASE = Duration.ofSeconds(2);
    public static final String NAMESPACE = "test";
    static final LeaseTable TABLE = LeaseTable.parse("public.pglock_lease");

    private final TestDatabase database;
    private final List<AutoCloseable> open = new CopyOnWriteArrayList<>();

    private LeaseStores(TestDatabase database) {
        this.database = database;
    }

    public static LeaseStores withTable() {
        LeaseStores stores = withoutTable();
        stores.database.execute(LeaseSchema.ddl(TABLE));
        return stores;
    }

    static LeaseStores withoutTable() {
        return new LeaseStores(PostgresServer.shared().newDatabase());
    }

    public TestDatabase database() {
        return database;
    }

    public LeaseStore store(StoreIdentity identity) {
        return store(identity, database.url());
    }

    LeaseStore store(String label) {
        return store(StoreIdentity.random(NAMESPACE, label));
    }

    LeaseStore store(String label, TcpProxy proxy) {
        return store(StoreIdentity.random(NAMESPACE, label), database.url(proxy));
    }

    private LeaseStore store(StoreIdentity identity, String url) {
        return store(identity, spec(url), TABLE, Duration.ofDays(7));
    }

    LeaseStore store(StoreIdentity identity, Supplier<ConnectionSpec> specs, LeaseTable table, Duration retention) {
        OwnConnections connections = connections(identity.label(), specs, 2);
        LeaseStore store = new LeaseStore(connections, identity, table, JdbcTimeouts.of(LEASE), retention);
        open.add(store);
        return store;
    }

    OwnConnections connections(String label, Supplier<ConnectionSpec> specs, int size) {
        OwnConnections connections = new OwnConnections(sessions(label, specs), size);
        open.add(connections);
        return connections;
    }

    public SessionFactory sessions(String label) {
        return sessions(label, spec(database.url()));
    }

    private static SessionFactory sessions(String label, Supplier<ConnectionSpec> specs) {
        return new SessionFactory(specs, SessionSettings.of(NAMESPACE, label, JdbcTimeouts.of(LEASE)));
    }

    Supplier<ConnectionSpec> spec(String url) {
        return () -> ConnectionSpec.of(url, database.username(), database.password());
    }

    @Override
    public void close() throws Exception {
        for (AutoCloseable closeable : open) {
            closeable.close();
        }
        database.close();
    }

    // ---- in the words of the tests

    static Claim claim(String name) {
        return claim(name, LEASE);
    }

    static Claim claim(String name, Duration lease) {
        return new Claim(name, key(name), lease, null, null);
    }

    static Claim claim(String name, Tick tick) {
        return new Claim(name, key(name), LEASE, null, null, tick);
    }

    static long key(String name) {
        return KeyDerivation.SHA256.key(NAMESPACE, name);
    }

    static ClaimAnswer.Granted granted(LockStore store, String name) {
        return granted(store.claim(claim(name)));
    }

    static ClaimAnswer.Granted granted(ClaimAnswer answer) {
        if (answer instanceof ClaimAnswer.Granted granted) {
            return granted;
        }
        throw new AssertionError("Not granted: " + answer);
    }

    static Denial denied(LockStore store, String name) {
        ClaimAnswer answer = store.claim(claim(name));
        if (answer instanceof ClaimAnswer.Denied denied) {
            return denied.denial();
        }
        throw new AssertionError("Not denied: " + answer);
    }

    static Release release(String name, ClaimAnswer.Granted granted) {
        return new Release(name, key(name), granted.fence(), RunOutcome.SUCCEEDED, null, null, null, false);
    }

    static Renewal renewal(String name, ClaimAnswer.Granted granted) {
        return new Renewal(name, granted.fence(), LEASE, null);
    }
}
