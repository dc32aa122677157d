package dev.pglock.sample.postgres;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A PostgreSQL that one process has to itself, may stop, and may start again with its data, its port and its password. A
 * second process must not use the same state directory meanwhile. All methods block until the server has done as it was
 * told. Thread-safe.
 */
public final class OwnPostgres implements AutoCloseable {

    private final StateDirectory directory;

    private final PostgresServer server;

    private final ConnectionDetails connection;

    private final ReentrantLock guard = new ReentrantLock();

    private boolean running = true;

    private boolean closed;

    private OwnPostgres(StateDirectory directory, PostgresServer server, ConnectionDetails connection) {
        this.directory = directory;
        this.server = server;
        this.connection = connection;
    }

    /**
     * Starts a fresh and empty server. One that a killed process has left there is replaced.
     *
     * @throws SharedPostgresException if it cannot be started
     */
    public static OwnPostgres start(Path stateDirectory) {
        StateDirectory directory = StateDirectory.open(stateDirectory);
        PostgresServer server = new PostgresServer(directory, PostgresBinaries.ofThisUser());
        try {
            return new OwnPostgres(directory, server, server.start());
        } catch (IOException ex) {
            throw new SharedPostgresException("The state directory " + directory.path() + " cannot be used", ex);
        }
    }

    /** Below the temporary directory, one for each operating system user and purpose. */
    public static Path stateDirectory(String purpose) {
        Path ofThisUser = StateDirectory.ofThisUser();
        return ofThisUser.resolveSibling(ofThisUser.getFileName() + "-" + purpose);
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

    /** Ends all sessions and stops it, as an administrator does. */
    public void stop() {
        change(false, this.server::halt);
    }

    /** Starts it again; it takes connections when this returns. */
    public void restart() {
        int port = Integer.parseInt(url().replaceAll(".*:(\\d+)/.*", "$1"));
        change(true, () -> this.server.resume(port));
    }

    /** Stops it for good and removes its data. Idempotent. */
    @Override
    public void close() {
        this.guard.lock();
        try {
            if (!this.closed) {
                this.closed = true;
                this.running = false;
                this.server.stop();
            }
        } catch (IOException ex) {
            throw new SharedPostgresException("The state directory " + this.directory.path() + " is in the way", ex);
        } finally {
            this.guard.unlock();
        }
    }

    private void change(boolean toRunning, Change change) {
        this.guard.lock();
        try {
            if (this.running != toRunning && !this.closed) {
                change.run();
                this.running = toRunning;
            }
        } catch (IOException ex) {
            throw new SharedPostgresException("PostgreSQL did not do as it was told", ex);
        } finally {
            this.guard.unlock();
        }
    }

    private interface Change {

        void run() throws IOException;
    }
}
