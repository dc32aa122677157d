package dev.pglock.sample.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.sample.SampleApplication;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A JVM of its own, leader of its own process group like a command typed into a terminal. */
public final class Instance implements AutoCloseable {

    static final String JOINED = "JOINED ";

    private static final Duration TIMEOUT = Duration.ofSeconds(45);

    private final Process process;

    private final Path output;

    private Instance(Process process, Path output) {
        this.process = process;
        this.output = output;
    }

    static Instance plain(Path stateDirectory) {
        return start(PlainInstance.class, List.of(), List.of(stateDirectory.toString()));
    }

    static Instance spring(Path stateDirectory, String... arguments) {
        return start(
                SpringInstance.class,
                List.of("-Dsample.postgres.state-directory=" + stateDirectory),
                List.of(arguments));
    }

    /** The sample itself. */
    public static Instance sample(Path stateDirectory, String... arguments) {
        return start(
                SampleApplication.class,
                List.of("-Dsample.postgres.state-directory=" + stateDirectory),
                List.of(arguments));
    }

    /** The lab, with what it starts. */
    public static Instance lab(String... arguments) {
        return start(SampleApplication.class, List.of(), List.of(arguments));
    }

    /** The sample as it was processed ahead of time into a directory of classes. */
    public static Instance aheadOfTime(Path classes, Path stateDirectory, String... arguments) {
        String stateProperty = "-Dsample.postgres.state-directory=" + stateDirectory;
        return start(
                SampleApplication.class,
                List.of("-Dspring.aot.enabled=true", stateProperty),
                List.of(arguments),
                classes + java.io.File.pathSeparator + System.getProperty("java.class.path"));
    }

    private static Instance start(Class<?> main, List<String> options, List<String> arguments) {
        return start(main, options, arguments, System.getProperty("java.class.path"));
    }

    private static Instance start(Class<?> main, List<String> options, List<String> arguments, String classPath) {
        List<String> command = new ArrayList<>();
        // A test run started in the background may have been told to ignore SIGINT, and children inherit that.
        command.addAll(List.of("setsid", "env", "--default-signal=INT"));
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
        command.addAll(List.of("-cp", classPath));
        command.addAll(options);
        command.add(main.getName());
        command.addAll(arguments);
        try {
            Path output = Files.createTempFile("instance", ".log");
            return new Instance(
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile())
                            .start(),
                    output);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    /** Waits for the server; returns its URL. */
    String url() {
        return awaitOutput(Pattern.compile("^" + JOINED + "(.*)$", Pattern.MULTILINE));
    }

    /** Waits for a line; returns its first group. */
    public String awaitOutput(Pattern pattern) {
        await().atMost(TIMEOUT)
                .failFast(() -> assertThat(this.process.isAlive()).as(output()).isTrue())
                .until(() -> pattern.matcher(output()).find());
        Matcher matcher = pattern.matcher(output());
        assertThat(matcher.find()).isTrue();
        return matcher.group(1);
    }

    public long pid() {
        return this.process.pid();
    }

    public String output() {
        try {
            return Files.readString(this.output);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    public void sigterm() {
        this.process.destroy();
        awaitEnd();
    }

    /** Ctrl-C: the terminal signals the whole foreground process group. */
    public void ctrlC() throws IOException {
        new ProcessBuilder("kill", "-INT", "--", "-" + this.process.pid()).start();
        awaitEnd();
    }

    public void signal(String name) throws IOException, InterruptedException {
        Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(this.process.pid())).start();
        assertThat(kill.waitFor()).isZero();
    }

    public void kill() {
        this.process.destroyForcibly();
        awaitEnd();
    }

    void awaitEnd() {
        try {
            assertThat(this.process.waitFor(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS))
                    .as("instance ends")
                    .isTrue();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(ex);
        }
    }

    @Override
    public void close() {
        kill();
        this.output.toFile().delete();
    }
}
