package dev.pglock.sample.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** With real processes and real signals. */
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(90)
class SharedPostgresTests {

    @TempDir
    Path temporary;

    private Path stateDirectory;

    private StateDirectory state;

    private final Deque<Instance> instances = new ArrayDeque<>();

    @BeforeEach
    void isolate() throws IOException {
        this.stateDirectory = this.temporary.toRealPath().resolve("state");
        this.state = new StateDirectory(this.stateDirectory);
    }

    @AfterEach
    void cleanUp() throws IOException {
        this.instances.forEach(Instance::close);
        if (Files.exists(this.stateDirectory)) {
            new PostgresServer(this.state, PostgresBinaries.ofThisUser()).stop();
        }
    }

    @Test
    void instancesShareOneServerUntilTheLastOneStops() throws Exception {
        Instance first = plain();
        String url = first.url();
        Instance second = plain();
        assertThat(second.url()).isEqualTo(url);
        assertThat(postmasters()).hasSize(1);

        first.sigterm();
        assertThat(first.output()).contains("Leaving the embedded PostgreSQL");
        assertThat(query(url, "SELECT 1")).isEqualTo("1");

        second.sigterm();
        awaitNoServer();
        assertThat(this.state.data()).doesNotExist();
    }

    @Test
    void killingTheStarterLeavesTheServerToTheOther() throws Exception {
        Instance starter = plain();
        String url = starter.url();
        Instance other = plain();
        other.url();

        starter.kill();
        assertThat(query(url, "SELECT 1")).isEqualTo("1");

        other.sigterm();
        awaitNoServer();
    }

    @Test
    void ctrlCInTheTerminalOfTheStarterLeavesTheServerToTheOther() throws Exception {
        Instance starter = plain();
        String url = starter.url();
        plain().url();

        starter.ctrlC();
        assertThat(starter.output()).contains("Leaving the embedded PostgreSQL");
        assertThat(query(url, "SELECT 1")).isEqualTo("1");
    }

    @Test
    void anOrphanedServerIsReusedAndStoppedByTheNextInstance() throws Exception {
        Instance killed = plain();
        String url = killed.url();
        killed.kill();
        assertThat(postmasters()).hasSize(1);

        Instance next = plain();
        assertThat(next.url()).isEqualTo(url);
        next.sigterm();
        awaitNoServer();
    }

    @Test
    void startedAtTheSameInstantTheyStartOneServer() {
        Instance first = plain();
        Instance second = plain();

        assertThat(first.url()).isEqualTo(second.url());
        assertThat(postmasters()).hasSize(1);
        assertThat(first.output() + second.output()).containsOnlyOnce("Started an embedded PostgreSQL");
    }

    @Test
    void aServerThatCrashedIsReplaced() throws Exception {
        Instance killed = plain();
        killed.url();
        killed.kill();
        List<ProcessHandle> crashed = postmasters();
        crashed.forEach(ProcessHandle::destroyForcibly);
        awaitNoServer();
        assertThat(this.state.postmasterPid()).exists();

        assertThat(query(plain().url(), "SELECT 1")).isEqualTo("1");
        assertThat(postmasters()).hasSize(1).doesNotContainAnyElementsOf(crashed);
    }

    @Test
    void aProcessThatInheritedTheNumberOfADeadServerIsLeftInPeace() throws Exception {
        Process stranger = new ProcessBuilder("sleep", "600").start();
        try (ServerSocket port = new ServerSocket(0)) {
            Files.createDirectories(this.state.data());
            Files.writeString(this.state.password(), "stale");
            Files.write(
                    this.state.postmasterPid(),
                    List.of(
                            "" + stranger.pid(),
                            this.state.data().toString(),
                            "1700000000",
                            "" + port.getLocalPort(),
                            "",
                            "127.0.0.1",
                            "  1  1",
                            "ready   "));

            assertThat(query(plain().url(), "SELECT 1")).isEqualTo("1");
            assertThat(stranger.isAlive()).isTrue();
        } finally {
            stranger.destroyForcibly();
        }
    }

    @Test
    void anInstanceKilledWhileItStartsTheServerLeavesNothingInTheWay() throws Exception {
        Instance killed = plain();
        // The first one on a machine unpacks PostgreSQL before.
        await().atMost(Duration.ofSeconds(60))
                .until(() -> Files.exists(this.state.data().resolve("PG_VERSION")));
        killed.kill();
        assertThat(killed.output()).doesNotContain("Started an embedded PostgreSQL");

        assertThat(query(plain().url(), "SELECT 1")).isEqualTo("1");
        assertThat(postmasters()).hasSize(1);
    }

    @Test
    void listensOnLoopbackOnly() throws Exception {
        String url = plain().url();

        assertThat(query(url, "SHOW listen_addresses")).isEqualTo("127.0.0.1");
        assertThat(query(url, "SHOW unix_socket_directories")).isEmpty();
    }

    @Test
    void aPortTakenMeanwhileIsReplacedByAnother() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            int free = PostgresServer.freePort();
            Deque<Integer> ports = new ArrayDeque<>(List.of(taken.getLocalPort(), free));
            assertThat(server(ports::removeFirst).start().url()).contains(":" + free + "/");
        }
    }

    @Test
    void noFreePortSaysWhatToDo() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            assertThatExceptionOfType(SharedPostgresException.class)
                    .isThrownBy(() -> server(taken::getLocalPort).start())
                    .withMessageContaining("no free port")
                    .withMessageContaining("spring.datasource.url");
        }
    }

    @Test
    void anUnusableStateDirectorySaysWhatToDo() throws Exception {
        Path file = Files.createFile(this.temporary.resolve("file"));

        assertThatExceptionOfType(SharedPostgresException.class)
                .isThrownBy(() -> SharedPostgres.join(file.resolve("state")))
                .withMessageContaining(file.toString())
                .withMessageContaining("spring.datasource.url");
    }

    private Instance plain() {
        Instance instance = Instance.plain(this.stateDirectory);
        this.instances.add(instance);
        return instance;
    }

    private PostgresServer server(PostgresServer.PortSource ports) {
        return new PostgresServer(StateDirectory.open(this.stateDirectory), PostgresBinaries.ofThisUser(), ports);
    }

    private List<ProcessHandle> postmasters() {
        return TestServer.postmasters(this.stateDirectory);
    }

    /** A server removes its pid file, which is what pg_ctl waits for, a moment before it ends. */
    private void awaitNoServer() {
        await().until(() -> postmasters().isEmpty());
    }

    private String query(String url, String sql) throws SQLException, IOException {
        String password = Files.readString(this.state.password());
        try (Connection connection = DriverManager.getConnection(url, "postgres", password);
                Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            result.next();
            return Objects.requireNonNull(result.getString(1));
        }
    }
}
