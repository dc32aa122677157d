package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.sample.postgres.Instance;
import dev.pglock.sample.postgres.OwnPostgres;
import dev.pglock.sample.postgres.TestServer;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** The lab as a command, and its end. */
@Tag("long")
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(180)
class LabProcessTests {

    private Instance lab;

    private Path state;

    private List<ProcessHandle> replicas;

    @BeforeEach
    void start() {
        this.lab = Instance.lab("--lab", "--lab.port=0");
        String port = this.lab.awaitOutput(Pattern.compile("The lab is at http://127\\.0\\.0\\.1:(\\d+)/"));
        this.state = OwnPostgres.stateDirectory("lab-" + port);
        this.replicas =
                ProcessHandle.of(this.lab.pid()).orElseThrow().children().toList();
        assertThat(this.replicas).hasSize(3);
    }

    @AfterEach
    void cleanUp() throws IOException {
        this.lab.close();
        this.replicas.forEach(ProcessHandle::destroyForcibly);
        TestServer.stop(this.state);
    }

    @Test
    void ctrlCStopsAllThatItStartedAFrozenReplicaToo() throws Exception {
        Process freeze = new ProcessBuilder(
                        "kill", "-STOP", Long.toString(this.replicas.get(0).pid()))
                .start();
        assertThat(freeze.waitFor()).isZero();

        this.lab.ctrlC();

        assertThat(this.lab.output()).contains("Stopped.");
        assertThat(this.replicas).noneMatch(ProcessHandle::isAlive);
        assertThat(TestServer.postmasters(this.state)).isEmpty();
    }

    @Test
    void whenItIsKilledItsReplicasEndToo() {
        this.lab.kill();

        // One that is still starting listens late.
        await().atMost(Duration.ofSeconds(90))
                .untilAsserted(() -> assertThat(this.replicas).noneMatch(ProcessHandle::isAlive));
    }
}
