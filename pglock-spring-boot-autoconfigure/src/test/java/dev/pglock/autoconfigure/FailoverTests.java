package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.testing.StandbyServer;
import dev.pglock.testing.TcpProxy;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;

/** A name that leads to another server from one moment to the next. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class FailoverTests extends TwoReplicas {

    private static StandbyServer servers;

    FailoverTests() {
        super(servers.onPrimary());
    }

    @BeforeAll
    static void startServers() {
        servers = StandbyServer.start();
    }

    @AfterAll
    static void stopServers() {
        servers.close();
    }

    /** The server of the database is gone by then. */
    @Override
    @AfterEach
    void stop() {
        replicas.forEach(ConfigurableApplicationContext::close);
    }

    @Test
    void onAStandbyNothingRunsAndWhenItIsPromotedTicksGoOnWithoutARestart(CapturedOutput output) {
        BothStrategies.beginWithRunsOf(Duration.ofMillis(50));
        try (TcpProxy proxy = TcpProxy.to(servers.primary())) {
            for (String replica : new String[] {"a", "b"}) {
                start(replica, database.url(proxy), BothStrategies.class, "spring.task.scheduling.pool.size=4");
            }
            BothStrategies.awaitRuns(2, System.nanoTime());
            servers.catchUp();

            proxy.redirect(servers.standby());
            await().pollDelay(Duration.ofSeconds(2)).until(() -> true);
            long standby = System.nanoTime();
            await().pollDelay(Duration.ofSeconds(1)).until(() -> true);
            assertThat(BothStrategies.runs(run -> run.begin > standby))
                    .as("runs on a standby")
                    .isEmpty();
            servers.failOver();
            long promoted = System.nanoTime();

            BothStrategies.awaitRuns(20, promoted);
            BothStrategies.assertNoOverlapSince(promoted);
            OutageTests.assertToldOnce(output, 2);
        }
    }
}
