package dev.pglock.autoconfigure;

import static org.awaitility.Awaitility.await;

import dev.pglock.testing.RestartableServer;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A server that is stopped while jobs run, and comes back. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class ServerOutageTests extends TwoReplicas {

    /** {@code -Dpglock.test.outage=PT20S} makes it longer. */
    private static final Duration AWAY = Duration.parse(System.getProperty("pglock.test.outage", "PT3S"));

    private static RestartableServer server;

    ServerOutageTests() {
        super(server.server().newDatabase());
    }

    @BeforeAll
    static void startServer() {
        server = RestartableServer.start();
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

    @Test
    void afterAServerWasAwayForLongerThanALeaseOneReplicaRunsAndTicksGoOn(CapturedOutput output) {
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
        start("a", BothStrategies.class, "spring.task.scheduling.pool.size=4");
        start("b", BothStrategies.class, "spring.task.scheduling.pool.size=4");
        BothStrategies.awaitRuns(2, System.nanoTime());
        BothStrategies.beginWithRunsOf(Duration.ofSeconds(1));
        await().until(() -> BothStrategies.runs(BothStrategies.Run::isRunning).size() == 2);

        server.stop();
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
        await().pollDelay(AWAY).atMost(AWAY.plusSeconds(1)).until(() -> true);
        server.restart();
        long back = System.nanoTime();

        BothStrategies.awaitRuns(20, back);
        BothStrategies.assertNoOverlapSince(back);
        OutageTests.assertToldOnce(output, 2);
    }
}
