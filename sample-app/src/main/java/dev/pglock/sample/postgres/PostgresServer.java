package dev.pglock.sample.postgres;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Properties;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server in a state directory: found, started, stopped. The caller holds the decision lock.
 *
 * <p>Zonky's {@code EmbeddedPostgres} is not used for this: it believes that a server belongs to the JVM that started
 * it. pg_ctl puts the server into a session of its own, so that Ctrl-C in the terminal of the instance which happened
 * to start it does not reach it, and can stop it from any other process.
 */
final class PostgresServer {

    private static final Logger log = LoggerFactory.getLogger(PostgresServer.class);

    private static final String LOOPBACK = "127.0.0.1";

    private static final String USER = "postgres";

    private static final int START_ATTEMPTS = 5;

    /** A server that was orphaned while starting, or is shutting down, is given this long to make up its mind. */
    private static final Duration UNDECIDED = Duration.ofSeconds(15);

    private static final Duration POLL_INTERVAL = Duration.ofMillis(100);

    private static final String INVALID_PASSWORD = "28P01";

    private final StateDirectory directory;

    private final PostgresBinaries binaries;

    private final PortSource ports;

    PostgresServer(StateDirectory directory, PostgresBinaries binaries) {
        this(directory, binaries, PostgresServer::freePort);
    }

    PostgresServer(StateDirectory directory, PostgresBinaries binaries, PortSource ports) {
        this.directory = directory;
        this.binaries = binaries;
        this.ports = ports;
    }

    /** Returns null if no server is running here, or none that can be used. */
    @Nullable
    ConnectionDetails find() throws IOException {
        long start = System.nanoTime();
        while (true) {
            PostmasterPid running = PostmasterPid.read(this.directory.postmasterPid());
            if (running == null
                    || running.programOf(this.binaries) == null
                    || Files.notExists(this.directory.password())) {
                return null;
            }
            ConnectionDetails connection = connectionTo(running.port());
            try {
                verify(connection);
                return connection;
            } catch (SQLException ex) {
                if (INVALID_PASSWORD.equals(ex.getSQLState())) {
                    return null;
                }
                if (System.nanoTime() - start > UNDECIDED.toNanos()) {
                    log.warn("The embedded PostgreSQL (process {}) does not answer", running.pid(), ex);
                    return null;
                }
            }
            pause();
        }
    }

    /** Replaces whatever is there by a fresh and empty server. */
    ConnectionDetails start() throws IOException {
        long start = System.nanoTime();
        this.binaries.unpack();
        stopIfRunning();
        StrayProcesses.kill(this.binaries.root(), this.directory.data());
        StateDirectory.deleteRecursively(this.directory.data());
        Files.deleteIfExists(this.directory.serverLog());
        Files.writeString(this.directory.password(), newPassword());
        initialise();
        int port = startOnFreePort();
        ConnectionDetails connection = connectionTo(port);
        try {
            verify(connection);
        } catch (SQLException ex) {
            throw new SharedPostgresException("The embedded PostgreSQL was started but does not answer", ex);
        }
        log.info(
                "Started an embedded PostgreSQL in {} ms: {} (user {}, password in {})",
                Duration.ofNanos(System.nanoTime() - start).toMillis(),
                connection.url(),
                USER,
                this.directory.password());
        return connection;
    }

    /** Stops the server and removes its data. */
    void stop() throws IOException {
        long start = System.nanoTime();
        stopIfRunning();
        StateDirectory.deleteRecursively(this.directory.data());
        Files.deleteIfExists(this.directory.password());
        log.info(
                "Stopped the embedded PostgreSQL in {} ms: no other instance of the sample uses it",
                Duration.ofNanos(System.nanoTime() - start).toMillis());
    }

    /** Ends all sessions and stops the server. Its data stays. */
    void halt() throws IOException {
        stopIfRunning();
    }

    /** Starts a server that was halted, with the data and the port that it had. */
    void resume(int port) throws IOException {
        start(port);
    }

    private void initialise() throws IOException {
        command("initdb", Duration.ofMinutes(2))
                .with("-D", this.directory.data().toString())
                .with("--username=" + USER, "--auth=scram-sha-256", "--pwfile=" + this.directory.password())
                .with("--encoding=UTF8", "--no-locale", "--no-sync")
                // Loopback only, and no socket in the world-writable /tmp either.
                .with("--set=listen_addresses=" + LOOPBACK, "--set=unix_socket_directories=")
                .with("--set=max_connections=200")
                // The data does not outlive the last instance: no crash to be safe from.
                .with("--set=fsync=off")
                .run();
    }

    /** Between asking for a free port and the server binding it somebody else may; then another is tried. */
    private int startOnFreePort() throws IOException {
        for (int attempt = 1; ; attempt++) {
            int port = this.ports.next();
            try {
                start(port);
                return port;
            } catch (SharedPostgresException ex) {
                String serverLog = tail(this.directory.serverLog());
                if (!serverLog.contains("could not bind")) {
                    throw new SharedPostgresException(ex.problem() + System.lineSeparator() + serverLog);
                }
                if (attempt == START_ATTEMPTS) {
                    throw new SharedPostgresException("The embedded PostgreSQL found no free port on " + LOOPBACK
                            + " in " + START_ATTEMPTS + " attempts" + System.lineSeparator() + serverLog);
                }
                log.debug("Port {} was taken meanwhile", port);
                Files.deleteIfExists(this.directory.serverLog());
            }
        }
    }

    private void start(int port) throws IOException {
        command("pg_ctl", Duration.ofMinutes(2))
                .with("start", "-w", "-t", "60")
                .with("-D", this.directory.data().toString())
                .with("-l", this.directory.serverLog().toString())
                .with("-o", "-p " + port)
                .run();
    }

    private void stopIfRunning() throws IOException {
        PostmasterPid running = PostmasterPid.read(this.directory.postmasterPid());
        Path program = running == null ? null : running.programOf(this.binaries);
        if (program == null) {
            return;
        }
        // The one beside the running program: of its version, and there even if this JVM's jars have been replaced.
        Path pgCtl = program.resolveSibling("pg_ctl");
        try {
            stop(pgCtl, "fast");
        } catch (SharedPostgresException ex) {
            log.debug("A fast shutdown was not enough", ex);
            stop(pgCtl, "immediate");
        }
    }

    private void stop(Path pgCtl, String mode) throws IOException {
        new PostgresCommand(pgCtl, this.directory.commandLog(), Duration.ofSeconds(30))
                .with("stop", "-w", "-t", "10", "-m", mode)
                .with("-D", this.directory.data().toString())
                .run();
    }

    private PostgresCommand command(String program, Duration timeout) {
        return new PostgresCommand(this.binaries.program(program), this.directory.commandLog(), timeout);
    }

    private ConnectionDetails connectionTo(int port) throws IOException {
        return new ConnectionDetails(
                "jdbc:postgresql://" + LOOPBACK + ":" + port + "/postgres",
                USER,
                Files.readString(this.directory.password()).strip());
    }

    /** Logging in with a password that nobody else knows is also the proof that it is our server. */
    private static void verify(ConnectionDetails details) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", details.username());
        properties.setProperty("password", details.password());
        properties.setProperty("connectTimeout", "5");
        properties.setProperty("socketTimeout", "5");
        try (Connection connection = DriverManager.getConnection(details.url(), properties)) {
            if (!connection.isValid(5)) {
                throw new SQLException("The connection is not valid");
            }
        }
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static String newPassword() {
        byte[] bytes = new byte[16];
        new SecureRandom().nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static String tail(Path file) throws IOException {
        return Files.exists(file) ? PostgresCommand.tail(file) : "";
    }

    private static void pause() {
        try {
            Thread.sleep(POLL_INTERVAL.toMillis());
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new SharedPostgresException("Interrupted while waiting for the embedded PostgreSQL", ex);
        }
    }

    /** Where port numbers come from. */
    interface PortSource {

        int next() throws IOException;
    }
}
