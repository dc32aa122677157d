package dev.pglock.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A program in a JVM of its own, with the class path of this one and what it prints among what this one prints: a replica
 * that can be frozen and killed. Needs the command {@code kill}.
 */
public final class ChildJvm implements AutoCloseable {

    private final Process process;
    private final BlockingQueue<String> printed = new LinkedBlockingQueue<>();

    private ChildJvm(Process process) {
        this.process = process;
        Thread reader = new Thread(this::read, "child-" + process.pid());
        reader.setDaemon(true);
        reader.start();
    }

    /** Starts the {@code main} of a class. */
    public static ChildJvm start(Class<?> program, String... arguments) {
        return start(program, List.of(arguments));
    }

    /** The same. */
    public static ChildJvm start(Class<?> program, List<String> arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                program.getName()));
        command.addAll(arguments);
        try {
            return new ChildJvm(
                    new ProcessBuilder(command).redirectErrorStream(true).start());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void read() {
        try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                System.out.println(line);
                printed.add(line);
            }
        } catch (IOException e) {
            // It has ended.
        }
    }

    /** Waits until it prints that line. Every line is waited for once. */
    public void expect(String line, Duration atMost) throws InterruptedException {
        long end = System.nanoTime() + atMost.toNanos();
        String next;
        do {
            next = printed.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } while (next != null && !next.equals(line));
        if (next == null) {
            throw new AssertionError("The program did not print " + line + " within " + atMost);
        }
    }

    /** Stops it where it stands ({@code SIGSTOP}), as a machine that is suspended, unless it has ended. */
    public void freeze() {
        signal("STOP");
    }

    /** Lets it go on ({@code SIGCONT}). */
    public void thaw() {
        signal("CONT");
    }

    private void signal(String signal) {
        if (process.isAlive()) {
            signal(process.pid(), signal);
        }
    }

    /** Asks it to end ({@code SIGTERM}), as whoever deploys does. */
    public void terminate() {
        // Not destroy, which closes what is still to be read.
        signal("TERM");
    }

    /** Kills it ({@code SIGKILL}) and waits until it is gone. */
    public void kill() {
        process.destroyForcibly().onExit().join();
    }

    /** Waits until it has ended; false if it has not within that time. */
    public boolean awaitEnd(Duration atMost) throws InterruptedException {
        return process.waitFor(atMost.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** How it has ended. */
    public int exitValue() {
        return process.exitValue();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public void close() {
        kill();
    }

    static void signal(long pid, String signal) {
        try {
            int exit = new ProcessBuilder("kill", "-" + signal, Long.toString(pid))
                    .start()
                    .waitFor();
            if (exit != 0) {
                throw new IllegalStateException("kill -" + signal + " " + pid + " failed");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
