package dev.pglock.sample.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** The whole application, as a process of its own: what counts is the order at its end. */
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(90)
class SharedPostgresInitializerTests {

    @TempDir
    Path temporary;

    private Path stateDirectory;

    @BeforeEach
    void isolate() throws IOException {
        this.stateDirectory = this.temporary.toRealPath().resolve("state");
    }

    @Test
    void theDataSourceWorksUntilTheContextHasClosedAndThenTheServerStops() {
        try (Instance application = Instance.spring(this.stateDirectory)) {
            application.url();
            application.sigterm();

            assertThat(application.output())
                    .contains("Started an embedded PostgreSQL")
                    .containsSubsequence(SpringInstance.QUERIED_WHILE_CLOSING, "Stopped the embedded PostgreSQL");
        }
        assertThat(this.stateDirectory.resolve("data")).doesNotExist();
    }

    @Test
    void anApplicationThatFailsToStartStopsTheServer() {
        try (Instance application = Instance.spring(this.stateDirectory, "--fail=true")) {
            application.awaitEnd();

            assertThat(application.output()).contains("Failing as told", "Stopped the embedded PostgreSQL");
        }
    }

    @Test
    void aConfiguredUrlIsLeftAlone() {
        try (Instance application =
                Instance.spring(this.stateDirectory, "--spring.datasource.url=jdbc:postgresql://127.0.0.1:1/x")) {
            application.awaitEnd();

            assertThat(application.output()).contains("127.0.0.1:1 refused");
        }
        assertThat(this.stateDirectory).doesNotExist();
    }

    @Test
    void anUnusableStateDirectoryIsExplainedWithoutAStackTrace() throws IOException {
        Path file = Files.createFile(this.temporary.resolve("file"));
        try (Instance application = Instance.spring(file.resolve("state"))) {
            application.awaitEnd();

            assertThat(application.output())
                    .contains("APPLICATION FAILED TO START", file.toString(), "set spring.datasource.url")
                    .doesNotContain("\tat ");
        }
    }
}
