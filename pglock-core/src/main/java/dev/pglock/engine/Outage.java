package dev.pglock.engine;

import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices the beginning and the end of an outage of one store: one WARN and one INFO, however many attempts fail. It is told
 * of claims, renewals and releases only: that reading works, or does not, says nothing of them.
 */
final class Outage {

    private static final Logger log = LoggerFactory.getLogger(Outage.class);

    private final LockStrategy strategy;
    private final String name;
    private final Listeners listeners;

    /** When the outage began; null while the database works. */
    private final AtomicReference<@Nullable Long> since = new AtomicReference<>();

    Outage(LockStrategy strategy, Listeners listeners) {
        this.strategy = strategy;
        this.name = strategy.name().toLowerCase(Locale.ROOT);
        this.listeners = listeners;
    }

    /** Asks the store, and takes note of whether it answers. */
    <T> T observe(Supplier<T> question) {
        T answer;
        try {
            answer = question.get();
        } catch (LockRefusedException e) {
            // It has answered.
            throw e;
        } catch (LockStorageException e) {
            began(e);
            throw e;
        }
        ended();
        return answer;
    }

    /** For how long; null: the database works. */
    @Nullable
    Duration lasting() {
        Long began = since.get();
        return began == null ? null : Duration.ofNanos(System.nanoTime() - began);
    }

    private void began(LockStorageException cause) {
        if (since.compareAndSet(null, System.nanoTime())) {
            log.warn(
                    "The database of the {} locks fails: nothing that needs a lock runs here until it works again. {}",
                    name,
                    describe(cause));
            listeners.tellLater(l -> l.outageBegan(strategy, cause));
        } else {
            log.debug("The database of the {} locks still fails: {}", name, describe(cause));
        }
    }

    private void ended() {
        if (since.get() == null) {
            return;
        }
        Long began = since.getAndSet(null);
        if (began != null) {
            Duration lasted = Duration.ofNanos(System.nanoTime() - began);
            log.info("The database of the {} locks works again after {} ms", name, lasted.toMillis());
            listeners.tellLater(l -> l.outageEnded(strategy, lasted));
        }
    }

    private static String describe(LockStorageException e) {
        String what = String.valueOf(e.getMessage());
        String why = e.getCause() == null ? null : e.getCause().getMessage();
        return why == null || what.contains(why) ? what : what + ": " + why;
    }
}
