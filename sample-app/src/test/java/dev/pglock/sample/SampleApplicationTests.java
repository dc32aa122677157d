package dev.pglock.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockRegistry;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.web.client.RestClient;

/** The sample in one replica. */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "sample.postgres.state-directory=target/state",
            "sample.reconciliation.batch-duration=10ms",
            "sample.rollup.cron=* * * * * *"
        })
@DirtiesContext
class SampleApplicationTests {

    @Autowired
    private JdbcClient jdbc;

    @Autowired
    private LockRegistry locks;

    @Autowired
    private TaxBackfill backfill;

    @Autowired
    private Runs runs;

    @LocalServerPort
    private int port;

    @Test
    void eachJobDoesItsWork() {
        await().atMost(30, TimeUnit.SECONDS).untilAsserted(() -> {
            assertThat(count("order_rollup")).isPositive();
            assertThat(count("customer_order WHERE tax IS NULL")).isZero();
            assertThat(count("customer_order WHERE reconciled_at IS NULL")).isZero();
        });
        assertThat(this.locks.findAll())
                .extracting("name")
                .contains(OrderRollup.LOCK, Reconciliation.LOCK, TaxBackfill.LOCK);
    }

    @Test
    void theBackfillIsNotRepeated() {
        this.backfill.backfill();
        this.backfill.backfill();

        assertThat(count("run WHERE job = '" + TaxBackfill.LOCK + "'")).isOne();
    }

    @Test
    void aFailedRunHasAnEndToo() {
        this.locks.runOnce("failing", () -> {
            long before = count("run WHERE finished_at IS NOT NULL AND job = 'failing'");
            try {
                this.runs.record(() -> {
                    assertThat(LockContext.current().name()).isEqualTo("failing");
                    throw new IllegalStateException("on purpose");
                });
            } catch (IllegalStateException ex) {
                assertThat(ex).hasMessage("on purpose");
            }
            assertThat(count("run WHERE finished_at IS NOT NULL AND job = 'failing'"))
                    .isEqualTo(before + 1);
        });
    }

    @Test
    void thePageAndItsJsonAreThere() {
        await().atMost(30, TimeUnit.SECONDS)
                .untilAsserted(() -> assertThat(get("/locks"))
                        .contains("\"replica\":\"replica-", "\"locks\":[{", OrderRollup.LOCK, "\"runs\":[{"));
        assertThat(get("/")).contains("pglock sample");
    }

    /** Any replica reads it from the database. */
    @Test
    void theProgressOfTheLongJobIsThere() {
        await().atMost(30, TimeUnit.SECONDS)
                .untilAsserted(() -> assertThat(get("/locks")).containsPattern("\"data\":\"batch \\d+ of 40\""));
    }

    private String get(String path) {
        return RestClient.create("http://127.0.0.1:" + this.port)
                .get()
                .uri(path)
                .retrieve()
                .requiredBody(String.class);
    }

    private long count(String from) {
        return this.jdbc.sql("SELECT count(*) FROM " + from).query(Long.class).single();
    }
}
