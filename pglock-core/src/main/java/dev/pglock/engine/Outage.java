package dev.pglock.engine;

import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
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

    /** Null while the database works. */
    private final AtomicReference<@Nullable Moment> since = new AtomicReference<>();

    /** A {@link System#nanoTime()}. */
    private record Moment(long nanos) {

        Duration age() {
            return Duration.ofNanos(System.nanoTime() - nanos);
        }
    }

    /** When the last question that was answered had been asked. */
    private volatile @Nullable Long lastAnswered;

    Outage(LockStrategy strategy, Listeners listeners) {
        this.strategy = strategy;
        this.name = strategy.name().toLowerCase(Locale.ROOT);
        this.listeners = listeners;
    }

    /** Asks the store, and takes note of whether it answers. */
    <T> T observe(Supplier<T> question) {
        return observe(question, answer -> true);
    }

    /**
     * Asks the store, and takes note of whether it answers.
     *
     * @param fromDatabase whether an answer shows that the database works; one that the store gave by itself does not
     */
    <T> T observe(Supplier<T> question, Predicate<T> fromDatabase) {
        long asked = System.nanoTime();
        T answer;
        try {
            answer = question.get();
        } catch (LockRefusedException e) {
            // It has answered.
            throw e;
        } catch (LockStorageException e) {
            began(e, asked);
            throw e;
        }
        if (fromDatabase.test(answer)) {
            ended(asked);
        }
        return answer;
    }

    /** For how long; null: the database works. */
    @Nullable
    Duration lasting() {
        Moment began = since.get();
        return began == null ? null : began.age();
    }

    /** Who was asked later has answered meanwhile: what failed was a connection that hung, and is over. */
    private boolean isOver(long asked) {
        Long answered = lastAnswered;
        return answered != null && asked - answered < 0;
    }

    private void began(LockStorageException cause, long asked) {
        if (isOver(asked)) {
            log.debug("The database of the {} locks failed, and works: {}", name, describe(cause));
        } else if (since.compareAndSet(null, new Moment(System.nanoTime()))) {
            log.warn(
                    "The database of the {} locks fails: nothing that needs a lock runs here until it works again. {}",
                    name,
                    describe(cause));
            listeners.tellLater(l -> l.outageBegan(strategy, cause));
        } else {
            log.debug("The database of the {} locks still fails: {}", name, describe(cause));
        }
    }

    /** What was asked before the outage began says nothing of its end, however late the answer is read. */
    private void ended(long asked) {
        lastAnswered = asked;
        Moment began = since.get();
        if (began != null && asked - began.nanos() >= 0 && since.compareAndSet(began, null)) {
            Duration lasted = began.age();
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
