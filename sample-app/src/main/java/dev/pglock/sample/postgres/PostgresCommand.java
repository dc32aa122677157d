package dev.pglock.sample.postgres;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** One call of a PostgreSQL program. */
final class PostgresCommand {

    private static final int TAIL_LINES = 20;

    private final List<String> command = new ArrayList<>();

    private final Path program;

    private final Path output;

    private final Duration timeout;

    PostgresCommand(Path program, Path output, Duration timeout) {
        this.program = program;
        this.output = output;
        this.timeout = timeout;
        if (isLinuxRoot()) {
            // PostgreSQL refuses to run as root. In a user namespace it sees another user, while files and signals
            // stay those of root, so that any later process of root can stop it.
            this.command.addAll(List.of("unshare", "--user"));
        }
        this.command.add(program.toString());
    }

    PostgresCommand with(String... arguments) {
        this.command.addAll(List.of(arguments));
        return this;
    }

    /**
     * Blocks until the program has ended. Its output goes to a file: a server started by pg_ctl must not inherit a pipe
     * that ends with this JVM.
     */
    void run() throws IOException {
        Process process = start();
        try {
            if (!process.waitFor(this.timeout.toMillis(), TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
                throw new SharedPostgresException(this.program + " did not end within " + this.timeout);
            }
        } catch (InterruptedException ex) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
            throw new SharedPostgresException("Interrupted while " + this.program + " was running", ex);
        }
        if (process.exitValue() != 0) {
            throw new SharedPostgresException(String.join(" ", this.command) + " failed with exit code "
                    + process.exitValue() + ":" + System.lineSeparator() + tail(this.output));
        }
    }

    private Process start() {
        try {
            return new ProcessBuilder(this.command)
                    .redirectInput(nullDevice())
                    .redirectErrorStream(true)
                    .redirectOutput(this.output.toFile())
                    .start();
        } catch (IOException ex) {
            throw new SharedPostgresException(this.program + " cannot be started", ex);
        }
    }

    static String tail(Path file) throws IOException {
        List<String> lines = new String(Files.readAllBytes(file), StandardCharsets.UTF_8)
                .lines()
                .toList();
        return String.join(System.lineSeparator(), lines.subList(Math.max(0, lines.size() - TAIL_LINES), lines.size()));
    }

    private static File nullDevice() {
        return new File(File.separatorChar == '\\' ? "NUL" : "/dev/null");
    }

    private static boolean isLinuxRoot() {
        return "Linux".equals(System.getProperty("os.name")) && "root".equals(System.getProperty("user.name"));
    }
}
