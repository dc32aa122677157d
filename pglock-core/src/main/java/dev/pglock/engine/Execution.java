package dev.pglock.engine;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The body that runs under a lock, once at most, as far as beginning, interrupting and ending it go. It is interrupted only
 * between its beginning and its end, once for being asked to end and once for the loss of its lock, and none of these
 * interrupts stays on the thread afterwards. A body whose work goes on elsewhere, after it has returned, has no thread to
 * interrupt any more: from then on it is cancelled instead, where that ends it.
 */
final class Execution {

    /** Where it stands. */
    enum State {
        NOT_BEGUN,
        RUNNING,
        /** It has ended, or none will begin any more. */
        ENDED
    }

    /** Why a body is interrupted. Whoever was told the second need not hear the first. */
    private enum Told {
        NOTHING,
        ASKED_TO_END,
        LOST
    }

    private final ReentrantLock guard = new ReentrantLock();
    private State state = State.NOT_BEGUN;
    private Told told = Told.NOTHING;
    private @Nullable Thread thread;
    private @Nullable Cancellation cancellation;

    /** How many interrupts of ours the thread has got. */
    private int sent;

    /** What is done in place of an interrupt. */
    interface Cancellation {

        /**
         * Whether it ends the work, and not only the waiting for it: the lock of work that may go on must not be released
         * for having asked it to end.
         */
        boolean endsTheWork();

        /** Must not block. */
        void cancel();
    }

    /**
     * The calling thread runs the body from now on.
     *
     * @return the state before: nothing has changed unless it is {@link State#NOT_BEGUN}
     */
    State begin() {
        guard.lock();
        try {
            State before = state;
            if (before == State.NOT_BEGUN) {
                state = State.RUNNING;
                thread = Thread.currentThread();
            }
            return before;
        } finally {
            guard.unlock();
        }
    }

    /**
     * No body begins any more.
     *
     * @return the state before: nothing has changed unless it is {@link State#NOT_BEGUN}
     */
    State endUnbegun() {
        guard.lock();
        try {
            State before = state;
            if (before == State.NOT_BEGUN) {
                state = State.ENDED;
            }
            return before;
        } finally {
            guard.unlock();
        }
    }

    /** An operator, or the end of this replica, wants the body to end: interrupts it the first time; tells whether it did. */
    boolean askToEnd() {
        return interrupt(Told.ASKED_TO_END);
    }

    /** Its lock is lost: interrupts it the first time, also if it was asked to end before; tells whether it did. */
    boolean lose() {
        return interrupt(Told.LOST);
    }

    private boolean interrupt(Told why) {
        guard.lock();
        try {
            if (state != State.RUNNING || told.compareTo(why) >= 0) {
                return false;
            }
            told = why;
            if (thread != null) {
                sent++;
                thread.interrupt();
                return true;
            }
        } finally {
            guard.unlock();
        }
        return cancelFor(why);
    }

    private boolean cancelFor(Told why) {
        Cancellation there = cancellation;
        if (there == null || (why != Told.LOST && !there.endsTheWork())) {
            return false;
        }
        there.cancel();
        return true;
    }

    /**
     * The body has left the calling thread, but not ended.
     *
     * @param instead of an interrupt; at once if there has been one
     */
    void leaveThread(Cancellation instead) {
        Told before;
        guard.lock();
        try {
            before = told;
            forgetThread(null);
            cancellation = instead;
        } finally {
            guard.unlock();
        }
        if (before != Told.NOTHING) {
            boolean ignored = cancelFor(before);
        }
    }

    /**
     * The body has ended.
     *
     * @param failure what it threw; null: nothing
     */
    void end(@Nullable Throwable failure) {
        guard.lock();
        try {
            forgetThread(failure);
            state = State.ENDED;
        } finally {
            guard.unlock();
        }
    }

    /**
     * An interrupt of ours that the body did not consume must not hit what its thread does next. Whoever throws an
     * {@link InterruptedException} has consumed one: if we sent no other, what is there now is somebody else's.
     */
    private void forgetThread(@Nullable Throwable failure) {
        int consumed = failure instanceof InterruptedException ? 1 : 0;
        if (thread != null && sent > consumed) {
            Thread.interrupted();
        }
        thread = null;
    }
}
