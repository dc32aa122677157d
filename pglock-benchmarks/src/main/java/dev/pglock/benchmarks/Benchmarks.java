package dev.pglock.benchmarks;

import dev.pglock.benchmarks.Settings.Part;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import org.slf4j.LoggerFactory;

/** Measures pglock beside its peers and prints tables in Markdown. The server is started here and stopped in the end. */
public final class Benchmarks {

    /** In each direction: 1 ms for a round trip. */
    private static final Duration DELAY = Duration.ofNanos(500_000);

    private Benchmarks() {}

    /**
     * Measures.
     *
     * @param arguments see {@link Settings#USAGE}
     * @throws Exception if something could not be measured
     */
    public static void main(String[] arguments) throws Exception {
        quiet();
        Settings settings;
        try {
            settings = Settings.of(arguments);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(2);
            return;
        }
        long begun = System.nanoTime();
        try (Arena arena = new Arena()) {
            printMachine(arena);
            print(settings, arena);
        }
        System.out.printf(Locale.ROOT, "%nTook %,d s.%n", (System.nanoTime() - begun) / 1_000_000_000L);
        System.exit(0);
    }

    private static void print(Settings settings, Arena arena) throws Exception {
        Set<Part> parts = settings.parts();
        if (parts.contains(Part.COSTS)) {
            new Costs(arena).print();
        }
        if (parts.contains(Part.THROUGHPUT)) {
            new Throughput(settings, arena::place)
                    .print(
                            "Throughput",
                            "Median and spread of " + settings.rounds() + " interleaved rounds of "
                                    + settings.length().toMillis() + " ms; ratios round by round.",
                            1,
                            4,
                            16);
        }
        if (parts.contains(Part.SLOW)) {
            try (TcpProxy wire = TcpProxy.to(arena.server())) {
                wire.delay(DELAY);
                new Throughput(settings, (label, connections) -> arena.place(label, connections, wire))
                        .print("Throughput with 1 ms added to each round trip", "As above.", 1, 16);
            }
        }
        if (parts.contains(Part.HEARTBEAT)) {
            new Heartbeats(arena, settings).print(10, 1000, 10_000);
        }
        if (parts.contains(Part.PROCESSES)) {
            new Processes(arena, settings).print();
        }
        if (parts.contains(Part.INTERCEPTOR)) {
            new Interceptor(settings).print();
        }
    }

    private static void printMachine(Arena arena) throws IOException {
        System.out.printf(
                "%s: JDK %s, %d processors (%s), PostgreSQL %s, fsync %s, synchronous_commit %s.%n",
                LocalDate.now(ZoneOffset.UTC),
                Runtime.version(),
                Runtime.getRuntime().availableProcessors(),
                processor(),
                setting(arena.database(), "server_version"),
                setting(arena.database(), "fsync"),
                setting(arena.database(), "synchronous_commit"));
    }

    private static String processor() throws IOException {
        Path path = Path.of("/proc/cpuinfo");
        if (!Files.exists(path)) {
            return System.getProperty("os.arch");
        }
        try (BufferedReader lines = Files.newBufferedReader(path, StandardCharsets.UTF_8)) {
            return lines.lines()
                    .filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 2))
                    .findFirst()
                    .orElse(System.getProperty("os.arch"));
        }
    }

    private static String setting(TestDatabase database, String name) {
        return Objects.requireNonNull(database.text("SHOW " + name));
    }

    /** Logs are no part of what is measured. */
    static void quiet() {
        ((ch.qos.logback.classic.Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME))
                .setLevel(ch.qos.logback.classic.Level.WARN);
    }
}
