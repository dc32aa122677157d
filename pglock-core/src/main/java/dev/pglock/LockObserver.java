package dev.pglock;

import org.jspecify.annotations.Nullable;

/**
 * Told of the bodies that run under locks, on their own threads, so that it may open scopes there. One per registry; what
 * it throws is logged and changes nothing. Thread-safe.
 */
@FunctionalInterface
public interface LockObserver {

    /** What observes nothing. */
    LockObserver NONE = lock -> Running.UNOBSERVED;

    /**
     * A body is about to run on this thread.
     *
     * @param lock its lock
     * @return is told of its end
     */
    Running begin(LockHandle lock);

    /** One body that runs. */
    interface Running {

        /** What is not observed. */
        Running UNOBSERVED = new Running() {};

        /** The body leaves the thread that {@link #begin} was called on, and may go on elsewhere. */
        default void leaveThread() {}

        /**
         * The body has ended and its lock was given back. May be called on any thread.
         *
         * @param failure what it threw; null: nothing
         * @param lost whether its lock had been lost before
         */
        default void end(@Nullable Throwable failure, boolean lost) {}
    }
}
