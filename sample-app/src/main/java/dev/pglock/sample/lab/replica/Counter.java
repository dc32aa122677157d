package dev.pglock.sample.lab.replica;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.annotation.OnLost;
import dev.pglock.annotation.Singleton;
import org.springframework.context.annotation.Profile;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Counts in the way that needs a lock: reads, waits, and writes what it has read plus one. It does not look whether it still
 * has the lock. In a transaction its write is fenced; outside of one nothing can be.
 */
@Component
@Profile("lab")
class Counter {

    private final JdbcClient jdbc;

    private final TransactionTemplate transaction;

    private final Pipe lab;

    Counter(JdbcClient jdbc, PlatformTransactionManager transactions, Pipe lab) {
        this.jdbc = jdbc;
        this.transaction = new TransactionTemplate(transactions);
        this.lab = lab;
    }

    @Singleton(name = "counter.fenced", onLost = OnLost.CONTINUE)
    void countFenced(long millis) throws InterruptedException {
        LockHandle lock = LockContext.current();
        long next = read("fenced") + 1;
        this.lab.tell("READ", "lock", lock.name(), "fence", lock.fence());
        Thread.sleep(millis);
        try {
            this.transaction.executeWithoutResult(status -> write("fenced", next));
            this.lab.tell("COMMITTED", "lock", lock.name(), "fence", lock.fence(), "detail", "the counter is " + next);
        } catch (LockLostException ex) {
            this.lab.tell(
                    "REFUSED",
                    "lock",
                    lock.name(),
                    "fence",
                    lock.fence(),
                    "detail",
                    "its commit of " + next + " was refused and rolled back");
        }
    }

    @Singleton(name = "counter.unfenced", onLost = OnLost.CONTINUE)
    void countUnfenced(long millis) throws InterruptedException {
        LockHandle lock = LockContext.current();
        long next = read("unfenced") + 1;
        this.lab.tell("READ", "lock", lock.name(), "fence", lock.fence());
        Thread.sleep(millis);
        write("unfenced", next);
        this.lab.tell("COMMITTED", "lock", lock.name(), "fence", lock.fence(), "detail", "the counter is " + next);
    }

    private long read(String counter) {
        return this.jdbc
                .sql("SELECT value FROM lab_counter WHERE name = :name")
                .param("name", counter)
                .query(Long.class)
                .single();
    }

    private void write(String counter, long value) {
        this.jdbc
                .sql("UPDATE lab_counter SET value = :value WHERE name = :name")
                .param("name", counter)
                .param("value", value)
                .update();
    }
}
