package dev.pglock.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import dev.pglock.sample.postgres.Instance;
import dev.pglock.sample.postgres.TestServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.http.HttpMethod;
import org.springframework.http.MediaType;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClient;

/** What the one on call sees of two replicas by HTTP, and does to them. */
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(240)
class OperatorTests {

    private static final Pattern URL = Pattern.compile("Replica \\S+ is at (http://127\\.0\\.0\\.1:\\d+/)");

    private static final Pattern LOSS =
            Pattern.compile("ERROR .* (Lock '" + Reconciliation.LOCK + "' \\(fence \\d+\\) was lost by '\\S+')");

    @TempDir
    Path temporary;

    private Path stateDirectory;

    private List<Instance> replicas = List.of();

    private JdbcClient database;

    @BeforeEach
    void startTwo() throws IOException {
        this.stateDirectory = this.temporary.toRealPath().resolve("state");
        String[] arguments = {"--server.port=" + freePort(), "--sample.rollup.cron=* * * * * *"};
        this.replicas = List.of(
                Instance.sample(this.stateDirectory, arguments), Instance.sample(this.stateDirectory, arguments));
        this.replicas.forEach(replica -> replica.awaitOutput(URL));
        this.database = TestServer.connect(this.stateDirectory);
    }

    @AfterEach
    void cleanUp() throws IOException {
        this.replicas.forEach(Instance::close);
        TestServer.stop(this.stateDirectory);
    }

    @Test
    void eachReplicaTellsWhoHoldsWhatAndAPauseOnOneStopsTheTicksOfBoth() {
        for (Instance asked : this.replicas) {
            await().atMost(Duration.ofSeconds(60)).untilAsserted(() -> {
                String lock = get(asked, Reconciliation.LOCK);
                assertThat(lock).contains("\"state\":\"HELD\"", "\"data\":\"batch ");
                assertThat(this.replicas.stream().map(OperatorTests::label))
                        .contains(JsonPath.<String>read(lock, "$.holder"));
            });
            assertThat(JsonPath.<List<String>>read(get(asked, ""), "$.locks[*].name"))
                    .contains(OrderRollup.LOCK, Reconciliation.LOCK, TaxBackfill.LOCK);
        }
        // When the one that runs it is due next is known when it has ended; the other asks once a second.
        await().atMost(Duration.ofSeconds(30))
                .until(() -> this.replicas.stream()
                        .map(replica -> get(replica, Reconciliation.LOCK))
                        .anyMatch(lock -> lock.contains("\"state\":\"HELD\"") && lock.contains("\"nextDue\":\"")));
        await().atMost(Duration.ofSeconds(30)).until(() -> rollups() > 2);

        assertThat(post(this.replicas.get(0), OrderRollup.LOCK, "pause")).contains("\"done\":true");
        long before = rollups();
        // Three ticks of both replicas, of which the first may have been under way
        await().pollDelay(Duration.ofSeconds(3)).atMost(Duration.ofSeconds(20)).until(() -> true);
        assertThat(rollups()).isLessThanOrEqualTo(before + 1);
        for (Instance asked : this.replicas) {
            assertThat(get(asked, OrderRollup.LOCK)).contains("\"state\":\"PAUSED\"", "\"paused\":\"ticket 4711\"");
        }

        assertThat(post(this.replicas.get(1), OrderRollup.LOCK, "resume")).contains("\"done\":true");
        await().atMost(Duration.ofSeconds(30)).until(() -> rollups() > before + 3);
    }

    @Test
    void aForcedReleaseMovesTheJobAndTheOldHolderIsTold() {
        String before = await().atMost(Duration.ofSeconds(60))
                .until(
                        () -> get(this.replicas.get(0), Reconciliation.LOCK),
                        lock -> lock.contains("\"data\":\"batch "));
        String label = JsonPath.read(before, "$.holder");
        Number fence = JsonPath.read(before, "$.fence");
        Instance holder = this.replicas.stream()
                .filter(replica -> label(replica).equals(label))
                .findFirst()
                .orElseThrow();
        Instance other = this.replicas.stream()
                .filter(replica -> replica != holder)
                .findFirst()
                .orElseThrow();

        assertThat(client(other)
                        .delete()
                        .uri("{name}?reason=hangs", Reconciliation.LOCK)
                        .retrieve()
                        .body(String.class))
                .contains("\"action\":\"force-release\",\"done\":true");

        assertThat(holder.awaitOutput(LOSS)).endsWith("(fence " + fence + ") was lost by '" + label + "'");
        assertThat(other.output()).contains("Lock '" + Reconciliation.LOCK + "' was released by force", "hangs");
        await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> {
            String next = get(other, Reconciliation.LOCK);
            assertThat(next).contains("\"state\":\"HELD\"");
            assertThat(JsonPath.<Number>read(next, "$.fence").longValue()).isGreaterThan(fence.longValue());
        });
    }

    @Test
    void whatCannotBeDoneIsRefusedAndWhatIsUnknownIsNotFound() {
        Instance asked = this.replicas.get(0);
        assertThatExceptionOfType(HttpClientErrorException.NotFound.class).isThrownBy(() -> get(asked, "never.seen"));
        assertThatExceptionOfType(HttpClientErrorException.BadRequest.class)
                .isThrownBy(() -> post(asked, OrderRollup.LOCK, "stop"));
        assertThatExceptionOfType(HttpClientErrorException.BadRequest.class)
                .as("no reason")
                .isThrownBy(() -> client(asked)
                        .method(HttpMethod.DELETE)
                        .uri("{name}", OrderRollup.LOCK)
                        .retrieve()
                        .toBodilessEntity());
    }

    private static RestClient client(Instance replica) {
        return RestClient.create(replica.awaitOutput(URL) + "actuator/pglock/");
    }

    private static String get(Instance replica, String name) {
        String all = replica.awaitOutput(URL) + "actuator/pglock";
        return RestClient.create(name.isEmpty() ? all : all + "/" + name)
                .get()
                .retrieve()
                .requiredBody(String.class);
    }

    private static String post(Instance replica, String name, String action) {
        return client(replica)
                .post()
                .uri("{name}", name)
                .contentType(MediaType.APPLICATION_JSON)
                .body(Map.of("action", action, "reason", "ticket 4711"))
                .retrieve()
                .requiredBody(String.class);
    }

    private long rollups() {
        return this.database
                .sql("SELECT count(*) FROM order_rollup")
                .query(Long.class)
                .single();
    }

    private static String label(Instance replica) {
        return "replica-" + replica.pid();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
