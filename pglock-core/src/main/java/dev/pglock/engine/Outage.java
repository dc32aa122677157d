package dev.pglock.engine;

import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices the beginning and the end of an outage of one store: one WARN and one INFO, however many attempts fail. It is told
 * of claims, renewals and releases only: that reading works, or does not, says nothing of them.
 *
 * <p>An error that the database has for one lock alone, because of what is to be written for it, is no outage: others work
 * meanwhile, and each of them would end it. That is told once for that lock.
 */
final class Outage {

    private static final Logger log = LoggerFactory.getLogger(Outage.class);

    /**
     * Errors by their class that say something of what was asked, and nothing of the database: a value, a constraint, a
     * trigger, a conflict, a caller's transaction that has failed before.
     */
    private static final List<String> OF_ONE_LOCK =
            List.of("21", "22", "23", "25P02", "27", "38", "39", "40", "44", "P0");

    /** Those that may be either: a right or a column that is missing, something that somebody has locked. */
    private static final List<String> OF_ONE_OR_ALL = List.of("42", "55");

    /**
     * Those that are met by whoever asks, whatever he asks for, so that an answer shows that they are over: no way to the
     * server, no login, no place for another session, shutting down, starting up, read-only, no table. Where there is no
     * state, the database has said nothing at all.
     */
    private static final List<String> OF_WHOEVER_ASKS = List.of("08", "28", "3D", "53300", "57P", "25006", "42P01");

    /** Names may be computed: beyond that many, what was told is forgotten. */
    private static final int TROUBLES_AT_MOST = 1000;

    private final LockStrategy strategy;
    private final String name;
    private final Listeners listeners;

    private final Runnable whenItBegins;

    /** Null while the database works. */
    private final AtomicReference<@Nullable Moment> since = new AtomicReference<>();

    /** What the database refuses; whether that was told of the lock, or taken for an outage. */
    private final Map<Question, Boolean> troubles = new ConcurrentHashMap<>();

    /**
     * What is asked for one lock.
     *
     * @param done what is to be done with it: "claimed", say
     */
    record Question(String lock, String done) {}

    /**
     * When it began.
     *
     * @param nanos {@link System#nanoTime()}
     * @param probed whether it can be asked for its end
     */
    private record Moment(long nanos, boolean probed) {

        Duration age() {
            return Duration.ofNanos(System.nanoTime() - nanos);
        }
    }

    /** When the youngest question that was answered had been asked. */
    private final AtomicReference<@Nullable Long> lastAnswered = new AtomicReference<>();

    /**
     * Creates one that has not begun.
     *
     * @param whenItBegins sees to it that it is probed; must not block
     */
    Outage(LockStrategy strategy, Listeners listeners, Runnable whenItBegins) {
        this.strategy = strategy;
        this.whenItBegins = whenItBegins;
        this.name = strategy.name().toLowerCase(Locale.ROOT);
        this.listeners = listeners;
    }

    /** Asks the store, and takes note of whether it answers. */
    <T> T observe(Supplier<T> ask) {
        return observe(null, ask, answer -> true);
    }

    /** The same, for one lock. */
    <T> T observe(Question question, Supplier<T> ask) {
        return observe(question, ask, answer -> true);
    }

    /**
     * Asks the store, and takes note of whether it answers.
     *
     * @param question what is asked for one lock; null: it is asked for many
     * @param fromDatabase whether an answer shows that the database works; one that the store gave by itself does not
     */
    <T> T observe(@Nullable Question question, Supplier<T> ask, Predicate<T> fromDatabase) {
        long asked = System.nanoTime();
        T answer;
        try {
            answer = ask.get();
        } catch (LockRefusedException e) {
            // It has answered.
            throw e;
        } catch (LockStorageException e) {
            if (question == null || !isTroubleOf(question, e)) {
                began(e, asked);
            }
            throw e;
        }
        if (fromDatabase.test(answer)) {
            ended(asked);
            if (question != null && Boolean.TRUE.equals(troubles.remove(question))) {
                log.info("Lock '{}' can be {} again", question.lock(), question.done());
            }
        }
        return answer;
    }

    /** Whether there is one whose end can be seen by asking the database anything at all. */
    boolean canBeProbed() {
        Moment began = since.get();
        return began != null && began.probed();
    }

    /**
     * Asks whether it is over.
     *
     * @param question false: that cannot be asked
     */
    void probe(BooleanSupplier question) {
        boolean ignored = observe(null, question::getAsBoolean, Boolean::booleanValue);
    }

    /**
     * Whether the failure is that of one lock, which is told if it was not. Where the error does not say, it is taken for an
     * outage at first; if that was ended by others, this lock is the one that fails.
     */
    private boolean isTroubleOf(Question question, LockStorageException cause) {
        String state = stateOf(cause);
        boolean surely = OF_ONE_LOCK.stream().anyMatch(state::startsWith);
        if (!surely && OF_ONE_OR_ALL.stream().noneMatch(state::startsWith)) {
            return false;
        }
        if (troubles.size() >= TROUBLES_AT_MOST) {
            troubles.clear();
        }
        Boolean told = troubles.putIfAbsent(question, surely);
        if (!surely && (told == null || since.get() != null)) {
            return false;
        }
        if (told == null || troubles.replace(question, false, true)) {
            log.warn(
                    "Lock '{}' cannot be {}, although the database of the {} locks answers: {}",
                    question.lock(),
                    question.done(),
                    name,
                    describe(cause));
        } else {
            log.debug("Lock '{}' still cannot be {}: {}", question.lock(), question.done(), describe(cause));
        }
        return true;
    }

    /** Empty: the database has said nothing. */
    private static String stateOf(LockStorageException failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof SQLException sql && sql.getSQLState() != null) {
                return sql.getSQLState();
            }
        }
        return "";
    }

    /** For how long; null: the database works. */
    @Nullable
    Duration lasting() {
        Moment began = since.get();
        return began == null ? null : began.age();
    }

    /** Who was asked later has answered meanwhile: what failed was a connection that hung, and is over. */
    private boolean isOver(long asked) {
        Long answered = lastAnswered.get();
        return answered != null && asked - answered < 0;
    }

    private void began(LockStorageException cause, long asked) {
        if (isOver(asked)) {
            log.debug("The database of the {} locks failed, and works: {}", name, describe(cause));
        } else if (since.compareAndSet(null, new Moment(System.nanoTime(), isOfWhoeverAsks(cause)))) {
            log.warn(
                    "The database of the {} locks fails: nothing that needs a lock runs here until it works again. {}",
                    name,
                    describe(cause));
            listeners.tellLater(l -> l.outageBegan(strategy, cause));
            if (canBeProbed()) {
                whenItBegins.run();
            }
        } else {
            log.debug("The database of the {} locks still fails: {}", name, describe(cause));
        }
    }

    private static boolean isOfWhoeverAsks(LockStorageException cause) {
        String state = stateOf(cause);
        return state.isEmpty() || OF_WHOEVER_ASKS.stream().anyMatch(state::startsWith);
    }

    /** What was asked before the outage began says nothing of its end, however late the answer is read. */
    private void ended(long asked) {
        lastAnswered.accumulateAndGet(asked, (known, now) -> known == null || now - known > 0 ? now : known);
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
