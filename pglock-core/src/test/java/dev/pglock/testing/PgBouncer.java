package dev.pglock.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A real PgBouncer between a client and PostgreSQL, on a free port of the loopback interface. */
public final class PgBouncer implements AutoCloseable {

    /** When the server's sessions change hands. */
    public enum Mode {
        TRANSACTION,
        SESSION
    }

    private static final List<Path> PLACES =
            List.of(Path.of("/usr/sbin/pgbouncer"), Path.of("/usr/bin/pgbouncer"), Path.of("/usr/local/bin/pgbouncer"));

    private final Process process;
    private final int port;

    private PgBouncer(Process process, int port) {
        this.process = process;
        this.port = port;
    }

    private static Optional<Path> program() {
        return PLACES.stream().filter(Files::isExecutable).findFirst();
    }

    /** Skips the test, with the reason, where the program is missing. */
    public static PgBouncer before(PostgresServer server, Mode mode) {
        Assumptions.assumeTrue(program().isPresent(), "pgbouncer is not installed (Debian: apt-get install pgbouncer)");
        try {
            return start(program().orElseThrow(), server, mode);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static PgBouncer start(Path program, PostgresServer server, Mode mode) throws IOException {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        // It runs as somebody else, who must be able to read it.
        Path directory = Files.createTempDirectory("pgbouncer");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        Path config = Files.writeString(directory.resolve("pgbouncer.ini"), """
                [databases]
                * = host=%s port=%d user=%s password=%s
                [pgbouncer]
                listen_addr = 127.0.0.1
                listen_port = %d
                unix_socket_dir =
                auth_type = any
                pool_mode = %s
                default_pool_size = 20
                max_client_conn = 200
                ignore_startup_parameters = extra_float_digits
                """.formatted(
                        server.host(),
                        server.port(),
                        server.username(),
                        server.password(),
                        port,
                        mode.name().toLowerCase(java.util.Locale.ROOT)));
        Files.setPosixFilePermissions(config, PosixFilePermissions.fromString("rw-r--r--"));
        List<String> command = new ArrayList<>(List.of(program.toString()));
        if ("root".equals(System.getProperty("user.name"))) {
            command.addAll(List.of("-u", "nobody"));
        }
        command.add(config.toString());
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        PgBouncer started = new PgBouncer(process, port);
        started.awaitReady();
        return started;
    }

    private void awaitReady() throws IOException {
        BufferedReader log =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        List<String> lines = new ArrayList<>();
        for (String line = log.readLine(); line != null; line = log.readLine()) {
            lines.add(line);
            if (line.contains("process up")) {
                new Socket("127.0.0.1", port).close();
                drain(log);
                return;
            }
        }
        throw new IOException("pgbouncer did not start: " + lines);
    }

    private static void drain(BufferedReader log) {
        Thread thread = new Thread(() -> {
            try (Stream<String> lines = log.lines()) {
                lines.forEach(line -> {});
            } catch (UncheckedIOException e) {
                // It has ended.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    public String url(TestDatabase database) {
        return "jdbc:postgresql://127.0.0.1:" + port + "/" + database.name();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        process.onExit().join();
    }
}
