package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.Scheduled;

/** Jobs on virtual threads: a fixed rate starts the next run while one still runs, and no carrier is kept meanwhile. */
@EnabledForJreRange(min = JRE.JAVA_25, disabledReason = "virtual threads are promised for the newest JDK")
class VirtualThreadsTests extends TwoReplicas {

    private static final Set<String> THREADS = ConcurrentHashMap.newKeySet();

    static class Overlapping extends Application {

        @Bean
        SlowJob slowJob(JdbcTemplate jdbc, Environment environment) {
            return new SlowJob(new Recorder(jdbc, environment.getProperty("pglock.instance-id")));
        }
    }

    static class SlowJob {

        private final Recorder recorder;

        SlowJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @Scheduled(fixedRate = 100)
        void tick() {
            LockContext.requireHeld("SlowJob.tick");
            THREADS.add(Thread.currentThread().toString().replaceFirst("\\[.*", ""));
            recorder.run("slow", 500);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory", "local"})
    void aRunIsNotJoinedByTheNextOneOfItsOwnJvmAndKeepsNoCarrier(String strategy, @TempDir Path directory)
            throws Exception {
        THREADS.clear();
        Path file = directory.resolve("pinned.jfr");
        try (Recording recording = new Recording()) {
            recording
                    .enable("jdk.VirtualThreadPinned")
                    .withThreshold(Duration.ofMillis(1))
                    .withStackTrace();
            recording.start();
            String[] properties = {"spring.threads.virtual.enabled=true", "pglock.strategy=" + strategy};
            start("A", Overlapping.class, properties);
            if (!strategy.equals("local")) {
                start("B", Overlapping.class, properties);
            }
            await().atMost(Duration.ofSeconds(20)).until(() -> runs("slow") >= 5);
            recording.dump(file);
        }
        assertThat(overlaps("slow")).isZero();
        assertThat(THREADS).containsExactly("VirtualThread");
        assertThat(pinnedByUs(file)).isEmpty();
    }

    /** A class that is needed for the first time is loaded by the JVM, which keeps the carrier, whoever needs it. */
    private static List<String> pinnedByUs(Path file) throws Exception {
        return RecordingFile.readAllEvents(file).stream()
                .filter(event -> event.getStackTrace() != null)
                .filter(event -> isIn(event, "dev.pglock.") && !isIn(event, "jdk.internal.loader."))
                .map(RecordedEvent::toString)
                .toList();
    }

    private static boolean isIn(RecordedEvent event, String types) {
        return event.getStackTrace().getFrames().stream()
                .anyMatch(frame -> frame.getMethod().getType().getName().startsWith(types));
    }
}
