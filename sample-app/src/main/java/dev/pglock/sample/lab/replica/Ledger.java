package dev.pglock.sample.lab.replica;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.annotation.OnLost;
import dev.pglock.annotation.RunOnce;
import org.springframework.context.annotation.Profile;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * A long job that does not look whether it still has its lock, and writes at its end, in a transaction. What is shown with
 * it is that this does no harm: the commit of a lost tenure is refused.
 */
@Component
@Profile("lab")
class Ledger {

    static final String LOCK = "ledger.close";

    private static final int STEPS = 20;

    private static final long STEP_MILLIS = 350;

    private final JdbcClient jdbc;

    private final TransactionTemplate transaction;

    private final Pipe lab;

    private volatile boolean closing;

    Ledger(JdbcClient jdbc, PlatformTransactionManager transactions, Pipe lab) {
        this.jdbc = jdbc;
        this.transaction = new TransactionTemplate(transactions);
        this.lab = lab;
    }

    // Not interrupted when it is lost: it is to try its commit.
    @Scheduled(fixedDelay = 1000)
    @RunOnce(name = LOCK, onLost = OnLost.CONTINUE)
    void close() throws InterruptedException {
        LockHandle lock = LockContext.current();
        for (int step = 1; step <= STEPS && !this.closing; step++) {
            if (lock.isHeld()) {
                lock.data("step " + step + " of " + STEPS);
            }
            Thread.sleep(STEP_MILLIS);
        }
        try {
            this.transaction.executeWithoutResult(status -> this.jdbc
                    .sql("INSERT INTO lab_ledger (fence) VALUES (:fence)")
                    .param("fence", lock.fence())
                    .update());
            this.lab.tell("COMMITTED", "lock", LOCK, "fence", lock.fence());
        } catch (LockLostException ex) {
            this.lab.tell(
                    "REFUSED", "lock", LOCK, "fence", lock.fence(), "detail", "its commit was refused and rolled back");
        }
    }

    @EventListener(ContextClosedEvent.class)
    void stop() {
        this.closing = true;
    }
}
