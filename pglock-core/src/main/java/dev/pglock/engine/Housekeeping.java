package dev.pglock.engine;

import dev.pglock.LockStorageException;
import dev.pglock.store.LockStore;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What is done for one store beside its locks: tidying it up when it wants that, and now and then; and during an outage
 * asking whether it is over, because those who need a lock may not come before tomorrow. While the database works it asks
 * nothing.
 */
final class Housekeeping extends Pulse {

    private static final Logger log = LoggerFactory.getLogger(Housekeeping.class);
    private static final long TIDY_EVERY = TimeUnit.HOURS.toNanos(1);
    private static final long PROBE_EVERY = TimeUnit.SECONDS.toNanos(5);

    private final LockStore store;
    private final Outage outage;

    Housekeeping(String name, LockStore store, Outage outage) {
        super(name);
        this.store = store;
        this.outage = outage;
    }

    /** Replicas that start together do not sweep together. */
    void start() {
        wakeBy(System.nanoTime() + ThreadLocalRandom.current().nextLong(TIDY_EVERY / 12, TIDY_EVERY));
    }

    /** The database fails. */
    void probeSoon() {
        wakeBy(System.nanoTime() + PROBE_EVERY);
    }

    /** Sees to it that the store is tidied up when it wants that. Never blocks. */
    void plan() {
        Duration until = store.untilTidyUp();
        if (until != null) {
            wakeBy(System.nanoTime() + until.toNanos());
        }
    }

    @Override
    @Nullable
    Long beat(long now) {
        if (outage.canBeProbed() && !isOver()) {
            return System.nanoTime() + PROBE_EVERY;
        }
        tidyUp();
        return System.nanoTime() + TIDY_EVERY;
    }

    private boolean isOver() {
        try {
            outage.probe(store::probe);
        } catch (LockStorageException e) {
            log.debug("The database of the {} locks was asked whether it works", store.strategy(), e);
        }
        return !outage.canBeProbed();
    }

    private void tidyUp() {
        try {
            store.tidyUp();
            plan();
        } catch (LockStorageException e) {
            log.debug("Tidying up the {} locks failed and is tried again later", store.strategy(), e);
        } catch (RuntimeException e) {
            log.warn("Tidying up the {} locks went wrong and is tried again later", store.strategy(), e);
        }
    }
}
