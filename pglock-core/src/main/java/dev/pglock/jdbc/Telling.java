package dev.pglock.jdbc;

import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Releases that tell whoever waits, or where the server refuses that, nobody: a lock that stays held because its release
 * cannot be told is worse than one that is polled for. Thread-safe.
 */
public final class Telling {

    private static final Logger log = LoggerFactory.getLogger(Telling.class);
    private static final String TELLS = "pg_notify(";

    /** Of the server's queue of notifications, which is found to be full by the commit. */
    private static final String LIMIT_EXCEEDED = "54000";

    private final AtomicBoolean refused = new AtomicBoolean();

    /**
     * Work with a statement that tells.
     *
     * @param <T> its result
     * @param <E> what it throws
     */
    @FunctionalInterface
    public interface Work<T, E extends Exception> {

        /**
         * Does it.
         *
         * @param form to be applied to the statement
         * @return the result
         * @throws E if it failed
         */
        T with(UnaryOperator<String> form) throws E;
    }

    /** Creates what one store remembers of it. */
    public Telling() {}

    /**
     * Does the work, and if the server refuses it for that, again without telling anybody.
     *
     * @param work in a transaction of its own
     * @param <T> its result
     * @param <E> what it throws
     * @return its result
     * @throws E if it failed for another reason, or both times
     */
    public <T, E extends Exception> T tellIfPossible(Work<T, E> work) throws E {
        try {
            T result = work.with(UnaryOperator.identity());
            if (refused.compareAndSet(true, false)) {
                log.info("Whoever waits for a lock is told of its release again");
            }
            return result;
        } catch (Exception e) {
            SQLException refusal = refusal(e);
            if (refusal == null) {
                throw e;
            }
            T result = work.with(Telling::silent);
            if (refused.compareAndSet(false, true)) {
                log.warn(
                        "The server lets nobody be told of a release; whoever waits for a lock on another replica polls: {}",
                        refusal.getMessage());
            }
            return result;
        }
    }

    /** What may have been refused only because somebody was to be told; null: it was not that. */
    private static @Nullable SQLException refusal(Exception failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof SQLException sql) {
                boolean isOne = SqlStates.kindOf(sql) == SqlStates.Kind.MISSING_PRIVILEGE
                        || LIMIT_EXCEEDED.equals(sql.getSQLState());
                return isOne ? sql : null;
            }
        }
        return null;
    }

    /** The right to execute a function is asked for even where it is not called: it must not stand in the statement. */
    private static String silent(String sql) {
        return sql.replace(TELLS, "concat(");
    }
}
