package dev.pglock.processes;

import dev.pglock.LockStrategy;
import dev.pglock.advisory.AdvisorySettings;
import dev.pglock.advisory.AdvisoryStore;
import dev.pglock.advisory.LockSessions;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseTable;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What a replica in a JVM of its own is told.
 *
 * @param url the database
 * @param label the replica's label
 */
record Jvm(String url, String username, String password, String label) {

    static final String NAMESPACE = "processes";
    static final Duration LEASE = Duration.ofSeconds(3);
    static final LeaseTable TABLE = LeaseTable.parse("public.pglock_lease");

    /** Starts a program with this and more arguments. */
    static ChildJvm start(Class<?> program, TestDatabase database, String label, String... more) {
        return new Jvm(database.url(), database.username(), database.password(), label).start(program, more);
    }

    ChildJvm start(Class<?> program, String... more) {
        List<String> arguments = new ArrayList<>(List.of(url, username, password, label));
        arguments.addAll(List.of(more));
        return ChildJvm.start(program, arguments);
    }

    /** Lets threads come to an end when the process is asked to, and then the rest. */
    static void atEnd(AtomicBoolean ending, List<Thread> threads, Runnable then) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending.set(true);
            for (Thread thread : threads) {
                try {
                    thread.join(10_000);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            then.run();
        }));
    }

    static Jvm of(String[] arguments) {
        return new Jvm(arguments[0], arguments[1], arguments[2], arguments[3]);
    }

    Connection direct() throws SQLException {
        return DriverManager.getConnection(url, username, password);
    }

    /** A registry with both strategies, as a Spring Boot application would have it. */
    LockEngine engine() {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, label);
        JdbcTimeouts timeouts = JdbcTimeouts.of(LEASE);
        SessionFactory sessions = new SessionFactory(
                () -> ConnectionSpec.of(url, username, password), SessionSettings.of(NAMESPACE, label, timeouts));
        OwnConnections connections = new OwnConnections(sessions, 2);
        return LockEngine.builder(EngineSettings.defaults(NAMESPACE, label, LockStrategy.LEASE)
                        .withLease(LEASE, null))
                .store(new LeaseStore(connections, identity, TABLE, timeouts, Duration.ZERO))
                .store(new AdvisoryStore(
                        new LockSessions(sessions, LEASE),
                        connections,
                        identity,
                        KeyDerivation.SHA256,
                        new AdvisorySettings(TABLE, LEASE, 100, timeouts)))
                .wakeUps(new NotifiedWakeUps(sessions))
                .build();
    }
}
