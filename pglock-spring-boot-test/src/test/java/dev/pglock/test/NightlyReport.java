package dev.pglock.test;

import dev.pglock.LockContext;
import dev.pglock.annotation.RunOnce;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** What a user would write, and test. */
@Component
class NightlyReport {

    private final AtomicInteger reports = new AtomicInteger();
    private final AtomicInteger polls = new AtomicInteger();
    private final AtomicInteger cleanings = new AtomicInteger();
    private volatile boolean fails;

    @Scheduled(cron = "0 0 3 * * *", zone = "Europe/Berlin")
    @RunOnce("report")
    void report() {
        LockContext.requireHeld("report");
        if (fails) {
            throw new IllegalStateException("no paper");
        }
        reports.incrementAndGet();
    }

    @Scheduled(initialDelay = 60_000, fixedRate = 60_000)
    @RunOnce("poll")
    void poll() {
        polls.incrementAndGet();
    }

    @Scheduled(initialDelay = 600_000, fixedDelay = 3_600_000)
    @RunOnce("clean")
    void clean() {
        cleanings.incrementAndGet();
    }

    @RunOnce(name = "backfill", version = "1")
    void backfill() {}

    int reports() {
        return reports.get();
    }

    int polls() {
        return polls.get();
    }

    int cleanings() {
        return cleanings.get();
    }

    void failFromNowOn(boolean fail) {
        fails = fail;
    }

    void reset() {
        reports.set(0);
        polls.set(0);
        cleanings.set(0);
        fails = false;
    }
}
