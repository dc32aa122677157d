package dev.pglock.sample;

import dev.pglock.LockContext;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** A long job: it takes several times the lease, which heartbeats renew meanwhile. */
@Component
class Reconciliation {

    /** What the lock is called when no annotation names it. */
    static final String LOCK = "Reconciliation.reconcile";

    private static final int BATCHES = 40;

    private final JdbcClient jdbc;

    private final Runs runs;

    private final Duration batchDuration;

    private volatile boolean closing;

    Reconciliation(
            JdbcClient jdbc, Runs runs, @Value("${sample.reconciliation.batch-duration}") Duration batchDuration) {
        this.jdbc = jdbc;
        this.runs = runs;
        this.batchDuration = batchDuration;
    }

    /**
     * {@code @Scheduled} alone is locked too. Every replica asks once a second; whoever finds the lock free goes on.
     *
     * @throws InterruptedException if the lock is lost: then another replica may be at work already
     */
    @Scheduled(fixedDelay = 1000)
    void reconcile() throws InterruptedException {
        this.runs.record(() -> {
            for (int batch = 1; batch <= BATCHES && !this.closing; batch++) {
                reconcile(batch);
                LockContext.current().data("batch " + batch + " of " + BATCHES);
            }
        });
    }

    private void reconcile(int batch) throws InterruptedException {
        // Stands for the payment provider, which is slow.
        Thread.sleep(this.batchDuration.toMillis());
        this.jdbc
                .sql("UPDATE customer_order SET reconciled_at = now() WHERE id % :batches = :batch")
                .param("batches", BATCHES)
                .param("batch", batch - 1)
                .update();
    }

    /** A stop waits for jobs that run. A long one ends at the next batch, and another replica begins anew. */
    @EventListener(ContextClosedEvent.class)
    void close() {
        this.closing = true;
    }
}
