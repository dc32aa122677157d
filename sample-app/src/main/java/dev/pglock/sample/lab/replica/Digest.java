package dev.pglock.sample.lab.replica;

import dev.pglock.annotation.RunOnce;
import dev.pglock.sample.Runs;
import org.springframework.context.annotation.Profile;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** A short job whose lock can be a lease or an advisory lock, as {@code pglock.locks} says. */
@Component
@Profile("lab")
class Digest {

    static final String LOCK = "mail.digest";

    private static final long MILLIS = 600;

    private final Runs runs;

    Digest(Runs runs) {
        this.runs = runs;
    }

    @Scheduled(cron = "*/2 * * * * *")
    @RunOnce(LOCK)
    void send() throws InterruptedException {
        // Stands for a mail server.
        this.runs.record(() -> Thread.sleep(MILLIS));
    }
}
