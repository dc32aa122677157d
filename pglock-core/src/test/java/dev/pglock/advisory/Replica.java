package dev.pglock.advisory;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;

/** A replica in a JVM of its own, which can be stopped and killed. It holds one lock and says what it knows of it. */
final class Replica implements AutoCloseable {

    static final String NAMESPACE = "processes";

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final ChildJvm process;

    private Replica(ChildJvm process) {
        this.process = process;
    }

    /** Returns when it holds the lock. */
    static Replica holding(TestDatabase database, String name, Duration lease) throws InterruptedException {
        Replica replica = new Replica(ChildJvm.start(
                Replica.class, database.url(), database.username(), database.password(), name, lease.toString()));
        replica.expect("HELD");
        return replica;
    }

    void expect(String expected) throws InterruptedException {
        process.expect(expected, PATIENCE);
    }

    ChildJvm process() {
        return process;
    }

    @Override
    public void close() {
        process.close();
    }

    static LockEngine engine(AdvisoryStore store, String label, Duration lease) {
        return LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.ADVISORY)
                        .withLease(lease, null))
                .store(store)
                .build();
    }

    public static void main(String[] arguments) throws InterruptedException {
        Duration lease = Duration.parse(arguments[4]);
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "child");
        SessionFactory sessions = new SessionFactory(
                () -> ConnectionSpec.of(arguments[0], arguments[1], arguments[2]),
                SessionSettings.of(NAMESPACE, "child", JdbcTimeouts.of(lease)));
        AdvisoryStore store = new AdvisoryStore(
                new LockSessions(sessions, lease),
                new OwnConnections(sessions, 1),
                identity,
                KeyDerivation.SHA256,
                new AdvisorySettings(ReplicaStores.TABLE, lease, 10, JdbcTimeouts.of(lease)));
        LockHandle lock = engine(store, "child", lease).acquire(LockRequest.of(arguments[3]));
        System.out.println("HELD");
        long last = System.nanoTime();
        while (true) {
            long now = System.nanoTime();
            // The first thing it does after it has been stopped for long
            if (now - last > lease.toNanos()) {
                System.out.println(lock.isHeld() ? "AWAKE AND HOLDS" : "AWAKE AND LOST");
            }
            last = now;
            Thread.sleep(1);
        }
    }
}
