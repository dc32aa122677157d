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
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** A replica in a JVM of its own, which can be stopped and killed. It holds one lock and says what it knows of it. */
final class Replica implements AutoCloseable {

    static final String NAMESPACE = "processes";

    private final Process process;
    private final BufferedReader output;

    private Replica(Process process) {
        this.process = process;
        this.output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Returns when it holds the lock. */
    static Replica holding(TestDatabase database, String name, Duration lease) throws IOException {
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx128m",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Replica.class.getName(),
                        database.url(),
                        database.username(),
                        database.password(),
                        name,
                        lease.toString()))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        Replica replica = new Replica(process);
        replica.expect("HELD");
        return replica;
    }

    void expect(String expected) throws IOException {
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (line.equals(expected)) {
                return;
            }
        }
        throw new AssertionError("The replica has ended without saying " + expected);
    }

    void kill() throws InterruptedException {
        process.destroyForcibly();
    }

    void signal(String signal) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid()))
                .start()
                .waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
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
