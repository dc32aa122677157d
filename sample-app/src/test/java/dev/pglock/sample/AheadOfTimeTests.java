package dev.pglock.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.sample.postgres.Instance;
import dev.pglock.sample.postgres.TestServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplicationAotProcessor;
import org.springframework.jdbc.core.simple.JdbcClient;

/** The sample with its beans written as code ahead of time, on the JVM. */
@Tag("long")
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(240)
class AheadOfTimeTests {

    @TempDir
    Path temporary;

    private final List<Instance> replicas = new ArrayList<>();

    @AfterEach
    void cleanUp() throws IOException {
        replicas.forEach(Instance::close);
        TestServer.stop(temporary.toRealPath().resolve("state"));
    }

    @Test
    void itsJobsAreLocked() throws Exception {
        Path classes = processAheadOfTime();
        Path state = temporary.toRealPath().resolve("state");
        for (int i = 0; i < 2; i++) {
            replicas.add(Instance.aheadOfTime(classes, state, "--server.port=0", "--sample.rollup.cron=* * * * * *"));
        }
        for (Instance replica : replicas) {
            String ignored = replica.awaitOutput(Pattern.compile("(Starting AOT-processed SampleApplication)"));
            ignored = replica.awaitOutput(Pattern.compile("(Locks .*" + OrderRollup.LOCK + ".*)"));
        }
        JdbcClient database = TestServer.connect(state);
        await().atMost(Duration.ofSeconds(60))
                .until(() -> count(database, "SELECT count(*) FROM run WHERE job = 'orders.rollup'") >= 5);

        assertThat(count(database, """
                        SELECT count(*) FROM run earlier JOIN run later ON later.job = earlier.job AND later.id > earlier.id
                        WHERE later.started_at < coalesce(earlier.finished_at, clock_timestamp())
                        """)).isZero();
        assertThat(count(database, "SELECT count(*) FROM pglock_lease WHERE name = 'orders.rollup' AND ticks <> '{}'"))
                .isOne();
        for (Instance replica : replicas) {
            assertThat(replica.output()).doesNotContain(" ERROR ");
        }
    }

    private static long count(JdbcClient database, String sql) {
        return database.sql(sql).query(Long.class).single();
    }

    /** What the Maven plugin's goal process-aot does. */
    private Path processAheadOfTime() throws Exception {
        Path sources = Files.createDirectories(temporary.resolve("sources"));
        Path classes = Files.createDirectories(temporary.resolve("classes"));
        Process processor = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Dsample.postgres.enabled=false",
                        "-cp",
                        System.getProperty("java.class.path"),
                        SpringApplicationAotProcessor.class.getName(),
                        SampleApplication.class.getName(),
                        sources.toString(),
                        classes.toString(),
                        classes.toString(),
                        "dev.pglock",
                        "sample-app")
                .redirectErrorStream(true)
                .redirectOutput(temporary.resolve("processor.log").toFile())
                .start();
        assertThat(processor.waitFor())
                .as(() -> read(temporary.resolve("processor.log")))
                .isZero();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> options = new ArrayList<>(List.of(
                "-proc:none",
                "-nowarn",
                "-parameters",
                "-cp",
                classes + java.io.File.pathSeparator + System.getProperty("java.class.path"),
                "-d",
                classes.toString()));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".java")).forEach(options::add);
        }
        assertThat(compiler.run(null, null, null, options.toArray(String[]::new)))
                .isZero();
        return classes;
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
