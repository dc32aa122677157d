package dev.pglock.testing;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A PostgreSQL that a test has to itself, and may stop and start again: its data, its port and the passwords stay the same.
 * Not thread-safe.
 */
public final class RestartableServer implements AutoCloseable {

    private final TemporaryDirectory directory;
    private final Map<String, String> settings;
    private final PostgresServer server;
    private @Nullable EmbeddedPostgres running;

    private RestartableServer(TemporaryDirectory directory, Map<String, String> settings) throws IOException {
        this.directory = directory;
        this.settings = settings;
        EmbeddedPostgres first = PostgresServer.builder(settings, data()).start();
        this.running = first;
        this.server = PostgresServer.of(first);
    }

    /** Starts it. The test is skipped where PostgreSQL is not embedded: nobody else's server is to be stopped. */
    public static RestartableServer start() {
        return start(Map.of());
    }

    /** The same, with settings of its own. */
    public static RestartableServer start(Map<String, String> settings) {
        assumeTrue(
                PostgresServer.isEmbedded(),
                "Only an embedded PostgreSQL can be stopped: run without -D" + PostgresServer.CHOICE);
        try {
            return new RestartableServer(TemporaryDirectory.create("pglock-restartable"), settings);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What stays the same, however often it is started. */
    public PostgresServer server() {
        return server;
    }

    /** Ends all sessions and stops, as an administrator does. Nobody can connect until {@link #restart}. */
    public void stop() {
        try {
            if (running != null) {
                running.close();
                running = null;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Stops without a word to anybody, as after a crash: the next start recovers from the log. */
    public void crash() {
        try {
            long pid = Long.parseLong(
                    Files.readAllLines(data().resolve("postmaster.pid")).get(0));
            ProcessHandle postmaster = ProcessHandle.of(pid).orElseThrow();
            ChildJvm.signal(pid, "QUIT");
            postmaster.onExit().get(30, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IllegalStateException("The server could not be crashed", e);
        }
        stop();
    }

    /** Starts it again, unless it runs. Returns when it takes connections. */
    public void restart() {
        if (running != null) {
            return;
        }
        try {
            running = PostgresServer.builder(settings, data())
                    .setPort(server.port())
                    .start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public boolean isRunning() {
        return running != null;
    }

    private Path data() {
        return directory.path().resolve("data");
    }

    @Override
    public void close() {
        stop();
        directory.close();
    }
}
