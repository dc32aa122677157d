package dev.pglock.sample.postgres;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One process's share in a PostgreSQL server that all processes with the same state directory use together: the first
 * to join starts it, the last to close stops it, and whoever is killed in between takes nothing with it.
 *
 * <p>Two locks, both of which the operating system drops when a process dies however it dies, carry all of this:
 *
 * <ul>
 *   <li>{@code decision.lock}, exclusive, is held while a process finds, starts or stops the server. So there is never
 *       more than one that decides.
 *   <li>{@code instances.lock}, shared, is held by every process while it uses the server. Who gets it exclusively is
 *       alone.
 * </ul>
 *
 * <p>A JVM may hold one share per state directory at a time: file locks belong to the JVM, not to the object.
 */
public final class SharedPostgres implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(SharedPostgres.class);

    private final StateDirectory directory;

    private final PostgresServer server;

    private final LockFile instances;

    private final ConnectionDetails connection;

    private final AtomicBoolean closed = new AtomicBoolean();

    private SharedPostgres(
            StateDirectory directory, PostgresServer server, LockFile instances, ConnectionDetails connection) {
        this.directory = directory;
        this.server = server;
        this.instances = instances;
        this.connection = connection;
    }

    /**
     * Finds the server of this state directory or starts one; blocks until it accepts connections.
     *
     * @throws SharedPostgresException if there is none and none can be started; the message says what to do instead
     */
    public static SharedPostgres join(Path stateDirectory) {
        StateDirectory directory = StateDirectory.open(stateDirectory);
        PostgresServer server = new PostgresServer(directory, PostgresBinaries.ofThisUser());
        LockFile instances = null;
        try (LockFile decision = LockFile.open(directory.decisionLock())) {
            decision.lock();
            instances = LockFile.open(directory.instancesLock());
            ConnectionDetails connection = findOrStart(server, instances);
            instances.lockShared();
            return new SharedPostgres(directory, server, instances, connection);
        } catch (IOException | RuntimeException ex) {
            if (instances != null) {
                instances.close();
            }
            throw ex instanceof SharedPostgresException known
                    ? known
                    : new SharedPostgresException("The state directory " + directory.path() + " cannot be used", ex);
        }
    }

    private static ConnectionDetails findOrStart(PostgresServer server, LockFile instances) throws IOException {
        ConnectionDetails running = server.find();
        if (running != null) {
            log.info("Using the embedded PostgreSQL that is already running: {}", running.url());
            return running;
        }
        if (!instances.tryLock()) {
            // They hold an address where nobody answers any more, and we cannot tell them the new one.
            log.warn("The embedded PostgreSQL died under other instances of the sample; a new and empty one is started."
                    + " Restart those instances.");
        }
        instances.unlock();
        return server.start();
    }

    public String url() {
        return this.connection.url();
    }

    public String username() {
        return this.connection.username();
    }

    public String password() {
        return this.connection.password();
    }

    /** Gives the share back and stops the server if it was the last one. Never throws; idempotent. */
    @Override
    public void close() {
        if (!this.closed.compareAndSet(false, true)) {
            return;
        }
        try (LockFile decision = LockFile.open(this.directory.decisionLock())) {
            decision.lock();
            this.instances.unlock();
            if (this.instances.tryLock()) {
                this.server.stop();
            } else {
                log.info("Leaving the embedded PostgreSQL to the other instances of the sample");
            }
        } catch (IOException | RuntimeException ex) {
            log.warn("The embedded PostgreSQL in {} could not be stopped", this.directory.path(), ex);
        } finally {
            this.instances.close();
        }
    }
}
