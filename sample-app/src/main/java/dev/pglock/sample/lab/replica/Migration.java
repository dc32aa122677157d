package dev.pglock.sample.lab.replica;

import dev.pglock.LockContext;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.sample.Runs;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** Done once for ever. Whoever comes while another does it waits until it is done. */
@Component
@Profile("lab")
class Migration {

    static final String LOCK = "users.migration";

    private static final int BATCHES = 12;

    private static final long BATCH_MILLIS = 250;

    private final Runs runs;

    Migration(Runs runs) {
        this.runs = runs;
    }

    @RunOnce(name = LOCK, version = "1", ifHeld = IfHeld.WAIT)
    void migrate() throws InterruptedException {
        this.runs.record(() -> {
            for (int batch = 1; batch <= BATCHES; batch++) {
                LockContext.current().data("batch " + batch + " of " + BATCHES);
                Thread.sleep(BATCH_MILLIS);
            }
        });
    }
}
