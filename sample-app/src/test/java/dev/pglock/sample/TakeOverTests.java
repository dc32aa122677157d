package dev.pglock.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.sample.postgres.Instance;
import dev.pglock.sample.postgres.TestServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.web.client.RestClient;

/** Two replicas as processes of their own, one of which dies or freezes. What counts is the database's clock and the sample's book. */
@EnabledOnOs(value = OS.LINUX, disabledReason = "setsid and signals")
@Timeout(240)
class TakeOverTests {

    /** As in application.yml. */
    private static final Duration LEASE = Duration.ofSeconds(5);

    /** How often each replica asks for the lock. */
    private static final Duration TICK = Duration.ofSeconds(1);

    /** From the end of a dead holder's lease until another replica runs: a second, its next tick, and a slow machine. */
    private static final Duration TAKE_OVER = Duration.ofSeconds(1).plus(TICK).plus(Duration.ofSeconds(2));

    private static final Pattern URL = Pattern.compile("Replica \\S+ is at (http://127\\.0\\.0\\.1:\\d+/)");

    private static final Pattern LOSS =
            Pattern.compile("ERROR .* Lock '" + Reconciliation.LOCK + "' \\(fence (\\d+)\\) was lost");

    @TempDir
    Path temporary;

    private Path stateDirectory;

    private List<Instance> replicas = List.of();

    @BeforeEach
    void startTwoAtTheSameTime() throws IOException {
        this.stateDirectory = this.temporary.toRealPath().resolve("state");
        String[] arguments = {"--server.port=" + freePort(), "--sample.rollup.cron=*/4 * * * * *"};
        this.replicas = List.of(
                Instance.sample(this.stateDirectory, arguments), Instance.sample(this.stateDirectory, arguments));
    }

    @AfterEach
    void cleanUp() throws IOException {
        this.replicas.forEach(Instance::close);
        TestServer.stop(this.stateDirectory);
    }

    @Test
    void theOtherReplicaTakesOverFromTheOneThatIsKilled() throws Exception {
        JdbcClient database = awaitBoth();
        Run running = awaitRunning(database);
        Instance victim = replica(running.replica());
        Instance survivor = otherThan(victim);

        victim.kill();
        OffsetDateTime killed = now(database);
        OffsetDateTime expiry = awaitTakeOver(database, running, survivor);
        assertThat(expiry).isBefore(killed.plus(LEASE));

        assertThat(RestClient.create(survivor.awaitOutput(URL))
                        .get()
                        .uri("/locks")
                        .retrieve()
                        .body(String.class))
                .contains("\"holder\":\"" + label(survivor) + "\"");
        assertThat(overlaps(database, running, expiry)).isEmpty();
        assertThat(runsOf(database, TaxBackfill.LOCK)).isOne();

        survivor.ctrlC();
        assertThat(survivor.output())
                .contains("Stopped the embedded PostgreSQL")
                .doesNotContain(" ERROR ", " was lost");
        await().until(() -> TestServer.postmasters(this.stateDirectory).isEmpty());
    }

    @Test
    void theOtherReplicaTakesOverFromTheOneThatIsFrozenWhichThenLearnsOfItsLoss() throws Exception {
        JdbcClient database = awaitBoth();
        Run running = awaitRunning(database);
        Instance victim = replica(running.replica());
        Instance survivor = otherThan(victim);

        victim.signal("STOP");
        OffsetDateTime ignored = awaitTakeOver(database, running, survivor);

        victim.signal("CONT");
        assertThat(victim.awaitOutput(LOSS)).isEqualTo(Long.toString(running.fence()));
        assertThat(survivor.output()).doesNotContain(" was lost");
    }

    private JdbcClient awaitBoth() throws IOException {
        List<String> urls =
                this.replicas.stream().map(replica -> replica.awaitOutput(URL)).toList();
        assertThat(urls).doesNotHaveDuplicates();
        return TestServer.connect(this.stateDirectory);
    }

    private static Run awaitRunning(JdbcClient database) {
        return await().atMost(Duration.ofSeconds(60))
                .until(() -> running(database), Optional::isPresent)
                .orElseThrow();
    }

    /** Checks who takes over and when; returns the end of the lease before. */
    private static OffsetDateTime awaitTakeOver(JdbcClient database, Run running, Instance survivor) {
        // Asked again and again: a renewal that was under way when its sender died may still move the end.
        AtomicReference<OffsetDateTime> expiry = new AtomicReference<>();
        Run next = await().atMost(Duration.ofSeconds(60))
                .until(
                        () -> {
                            expiry(database, running).ifPresent(expiry::set);
                            return after(database, running);
                        },
                        Optional::isPresent)
                .orElseThrow();
        assertThat(next.replica()).isEqualTo(label(survivor));
        assertThat(next.fence()).isGreaterThan(running.fence());
        assertThat(next.startedAt()).isBetween(expiry.get(), expiry.get().plus(TAKE_OVER));
        return expiry.get();
    }

    /** A reconciliation that has told of its progress, and is not near its end. */
    private static Optional<Run> running(JdbcClient database) {
        return database.sql("""
                        SELECT id, replica, fence, started_at AS "startedAt" FROM run
                        WHERE job = :job AND finished_at IS NULL
                          AND EXISTS (SELECT FROM pglock_lease l
                                      WHERE (l.name, l.fence) = (run.job, run.fence) AND l.data LIKE 'batch _ of %')
                        """)
                .param("job", Reconciliation.LOCK)
                .query(Run.class)
                .optional();
    }

    private static Optional<Run> after(JdbcClient database, Run previous) {
        return database.sql("""
                        SELECT id, replica, fence, started_at AS "startedAt" FROM run
                        WHERE job = :job AND id > :id ORDER BY id LIMIT 1
                        """)
                .param("job", Reconciliation.LOCK)
                .param("id", previous.id())
                .query(Run.class)
                .optional();
    }

    private static Optional<OffsetDateTime> expiry(JdbcClient database, Run run) {
        return database.sql("SELECT expires_at FROM pglock_lease WHERE name = :name AND fence = :fence")
                .param("name", Reconciliation.LOCK)
                .param("fence", run.fence())
                .query(OffsetDateTime.class)
                .optional();
    }

    /** Runs of one job at the same time. The one that was killed counts until its lease ended. */
    private static List<String> overlaps(JdbcClient database, Run killed, OffsetDateTime expiry) {
        return database.sql("""
                        SELECT earlier.job || ' ' || earlier.id || ' and ' || later.id
                        FROM run earlier JOIN run later ON later.job = earlier.job AND later.id > earlier.id
                        WHERE later.started_at < CASE
                                WHEN earlier.id = :killed THEN :expiry
                                WHEN earlier.replica = :victim THEN coalesce(earlier.finished_at, earlier.started_at)
                                ELSE coalesce(earlier.finished_at, 'infinity') END
                        """)
                .param("killed", killed.id())
                .param("victim", killed.replica())
                .param("expiry", expiry)
                .query(String.class)
                .list();
    }

    private static OffsetDateTime now(JdbcClient database) {
        return database.sql("SELECT clock_timestamp()")
                .query(OffsetDateTime.class)
                .single();
    }

    private static long runsOf(JdbcClient database, String job) {
        return database.sql("SELECT count(*) FROM run WHERE job = :job")
                .param("job", job)
                .query(Long.class)
                .single();
    }

    private Instance replica(String label) {
        return this.replicas.stream()
                .filter(replica -> label(replica).equals(label))
                .findFirst()
                .orElseThrow();
    }

    private Instance otherThan(Instance replica) {
        return this.replicas.stream()
                .filter(other -> other != replica)
                .findFirst()
                .orElseThrow();
    }

    private static String label(Instance replica) {
        return "replica-" + replica.pid();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    record Run(long id, String replica, long fence, OffsetDateTime startedAt) {}
}
