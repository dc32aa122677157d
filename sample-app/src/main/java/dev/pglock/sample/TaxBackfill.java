package dev.pglock.sample;

import dev.pglock.annotation.RunOnce;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

/** Work that is done once for ever: the first replica that comes up does it, and its success is remembered. */
@Component
class TaxBackfill {

    static final String LOCK = "orders.tax-backfill";

    private final JdbcClient jdbc;

    private final Runs runs;

    TaxBackfill(JdbcClient jdbc, Runs runs) {
        this.jdbc = jdbc;
        this.runs = runs;
    }

    /** With {@code version = "2"} it would run once more. */
    @EventListener(ApplicationReadyEvent.class)
    @RunOnce(name = LOCK, version = "1")
    void backfill() {
        this.runs.record(() -> this.jdbc
                .sql("UPDATE customer_order SET tax = round(amount * 0.19, 2) WHERE tax IS NULL")
                .update());
    }
}
