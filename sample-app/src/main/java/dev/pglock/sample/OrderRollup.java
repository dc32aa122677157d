package dev.pglock.sample;

import dev.pglock.annotation.RunOnce;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** A short job: every ten seconds a row with the totals. */
@Component
class OrderRollup {

    static final String LOCK = "orders.rollup";

    private final JdbcClient jdbc;

    private final Runs runs;

    OrderRollup(JdbcClient jdbc, Runs runs) {
        this.jdbc = jdbc;
        this.runs = runs;
    }

    /** It takes some milliseconds, and the replicas' timers do not fire in the same one: each tick runs once all the same. */
    @Scheduled(cron = "${sample.rollup.cron}")
    @RunOnce(LOCK)
    void rollUp() {
        this.runs.record(() -> this.jdbc
                .sql("INSERT INTO order_rollup (orders, amount) SELECT count(*), sum(amount) FROM customer_order")
                .update());
    }
}
