package dev.pglock.sample.lab;

import dev.pglock.sample.SampleApplication;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/**
 * One replica: a process of the ordinary sample, behind a network of its own. It may be started again after its end.
 * Thread-safe.
 */
final class Replica implements AutoCloseable {

    private static final Duration TIME_TO_STOP = Duration.ofSeconds(12);

    private static final Set<String> ALIVE = Set.of("starting", "up", "frozen", "cut", "stopping");

    private static final TypeReference<Map<String, Object>> EVENT = new TypeReference<>() {};

    private final String name;

    private final Database database;

    private final Board board;

    private final Path log;

    private final Relay network;

    private final JsonMapper json = new JsonMapper();

    private final ReentrantLock guard = new ReentrantLock();

    // Read without the guard: whoever waits at the board looks at states, and the guard is held while the board is
    // written.

    private volatile @Nullable Process process;

    private volatile String state = "down";

    private String strategyOfDigest = "lease";

    private boolean closed;

    Replica(String name, Database database, Board board, Path log) {
        this.name = name;
        this.database = database;
        this.board = board;
        this.log = log;
        this.network = Relay.to(database.address());
    }

    String name() {
        return this.name;
    }

    ReplicaView view() {
        Process running = this.process;
        return new ReplicaView(this.name, this.state, running == null ? null : running.pid());
    }

    boolean is(String state) {
        return this.state.equals(state);
    }

    /** Starts its process, unless there is one. Returns at once; it is {@code up} when it has said so. */
    void start() {
        locked(() -> {
            if (this.process == null && !this.closed) {
                this.network.mend();
                Process started = launch();
                this.process = started;
                become("starting");
                this.board.done(this.name, "started as process " + started.pid());
            }
            return null;
        });
    }

    private Process launch() {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx192m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xshare:auto",
                "-Dfile.encoding=UTF-8",
                "-Dstdout.encoding=UTF-8",
                "-cp",
                System.getProperty("java.class.path"),
                SampleApplication.class.getName(),
                "--spring.profiles.active=lab",
                "--spring.main.banner-mode=off",
                "--pglock.instance-id=" + this.name,
                "--server.port=0",
                "--lab.digest.strategy=" + this.strategyOfDigest,
                // Standard output is the pipe.
                "--logging.threshold.console=off",
                "--logging.file.name=" + this.log));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        // Not as arguments, which everybody on the machine can read.
        Map<String, String> environment = builder.environment();
        environment.put("SPRING_DATASOURCE_URL", this.database.urlThrough(this.network.port()));
        environment.put("SPRING_DATASOURCE_USERNAME", this.database.username());
        environment.put("SPRING_DATASOURCE_PASSWORD", this.database.password());
        try {
            Process started = builder.start();
            Thread reader = new Thread(() -> listen(started), "replica-" + this.name);
            reader.setDaemon(true);
            reader.start();
            return started;
        } catch (IOException ex) {
            throw new LabException("Replica " + this.name + " cannot be started: " + ex.getMessage(), ex);
        }
    }

    /** Until it has ended: what comes out before is told before. */
    private void listen(Process started) {
        String last = "";
        try (BufferedReader output = started.inputReader(StandardCharsets.UTF_8)) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                if (line.startsWith("{")) {
                    tell(line);
                } else if (!line.isBlank()) {
                    last = line;
                }
            }
        } catch (IOException ex) {
            // It has ended.
        }
        int exit = started.onExit().join().exitValue();
        String lastLine = last;
        locked(() -> {
            boolean wasUp = !this.state.equals("starting");
            boolean wasAsked = this.state.equals("stopping") || this.closed;
            this.process = null;
            become("down");
            this.board.ended(this.name, wasAsked);
            this.board.done(
                    this.name,
                    wasUp
                            ? "process " + started.pid() + " has ended"
                            : "did not start (exit code " + exit + "): " + lastLine + " - see " + this.log);
            return null;
        });
    }

    private void tell(String line) {
        Map<String, Object> event;
        try {
            event = this.json.readValue(line, EVENT);
        } catch (JacksonException ex) {
            return;
        }
        if ("READY".equals(event.get("kind"))) {
            locked(() -> {
                if (this.state.equals("starting")) {
                    become("up");
                }
                return null;
            });
        }
        this.board.told(this.name, event);
    }

    /** Sends a command down the pipe. */
    void command(String line) {
        locked(() -> {
            Process running = this.process;
            if (running == null) {
                throw new LabException("Replica " + this.name + " is down.");
            }
            try {
                // Not buffered, and never closed before the end of the process: that would be the end of the lab to it.
                OutputStream input = running.getOutputStream();
                input.write((line + "\n").getBytes(StandardCharsets.UTF_8));
                input.flush();
            } catch (IOException ex) {
                throw new LabException("Replica " + this.name + " does not listen: " + ex.getMessage(), ex);
            }
            return null;
        });
    }

    /** {@code kill -9}; blocks until it is gone. */
    void kill() {
        Process victim = doTo("kill -9", null, ALIVE);
        if (victim != null) {
            victim.destroyForcibly().onExit().join();
        }
    }

    /** Asks it to end, as whoever deploys does. Returns at once. */
    void terminate() {
        if (is("frozen")) {
            thaw();
        }
        Process asked = doTo("asked to stop", "stopping", ALIVE);
        if (asked != null) {
            signal(asked, "TERM");
        }
    }

    /** Stops it where it stands, as a machine that is suspended. */
    void freeze() {
        Process frozen = doTo("frozen", "frozen", Set.of("up"));
        if (frozen != null) {
            signal(frozen, "STOP");
        }
    }

    void thaw() {
        Process thawed = doTo("thawed", "up", Set.of("frozen"));
        if (thawed != null) {
            signal(thawed, "CONT");
        }
    }

    /** Lets nothing through its network any more: a black hole, with all sockets open. */
    void cut() {
        if (doTo("network cut", "cut", Set.of("up")) != null) {
            this.network.cut();
        }
    }

    /** What was held up arrives, late. */
    void mend() {
        this.network.mend();
        Process ignored = doTo("network mended", "up", Set.of("cut"));
    }

    /** Which strategy the lock of the digest has, or will have after its next start. */
    String strategyOfDigest() {
        return locked(() -> this.strategyOfDigest);
    }

    /** Which strategy the lock of the digest has from its next start on. */
    void strategyOfDigest(String strategy) {
        locked(() -> this.strategyOfDigest = strategy);
    }

    /** Says what is done; null, and nothing is to be done, if it is in no state for that. */
    private @Nullable Process doTo(String what, @Nullable String becomes, Set<String> from) {
        return locked(() -> {
            if (this.process == null || !from.contains(this.state)) {
                return null;
            }
            this.board.done(this.name, what);
            if (becomes != null) {
                become(becomes);
            }
            return this.process;
        });
    }

    private void become(String next) {
        this.state = next;
        this.board.condition(this.name, next);
    }

    private void signal(Process target, String signal) {
        try {
            int ignored = new ProcessBuilder("kill", "-" + signal, Long.toString(target.pid()))
                    .start()
                    .waitFor();
        } catch (IOException ex) {
            throw new LabException("The command kill is needed to freeze and stop replicas: " + ex.getMessage(), ex);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new LabException("Interrupted", ex);
        }
    }

    /** Asks it to end, whatever was done to it before; {@link #close} waits for that. */
    void prepareToClose() {
        Process running = locked(() -> {
            this.closed = true;
            return this.process;
        });
        if (running != null) {
            this.network.mend();
            signal(running, "CONT");
            signal(running, "TERM");
        }
    }

    /** Ends it: in good order if that is possible in time, otherwise by force. */
    @Override
    public void close() {
        prepareToClose();
        Process running = locked(() -> this.process);
        try {
            if (running != null && !running.waitFor(TIME_TO_STOP.toMillis(), TimeUnit.MILLISECONDS)) {
                running.destroyForcibly().onExit().join();
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            if (running != null) {
                running.destroyForcibly();
            }
        } finally {
            this.network.close();
        }
    }

    private <T extends @Nullable Object> T locked(java.util.function.Supplier<T> action) {
        this.guard.lock();
        try {
            return action.get();
        } finally {
            this.guard.unlock();
        }
    }
}
