package dev.pglock.engine;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The body that runs under a lock, once at most, as far as beginning, interrupting and ending it go. It is interrupted only
 * between its beginning and its end, once for being asked to end and once for the loss of its lock, and none of these
 * interrupts stays on the thread afterwards. A body whose work goes on elsewhere, after it has returned, has no thread to
 * interrupt any more: from then on it is cancelled instead.
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
    private @Nullable Runnable cancellation;

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
                thread.interrupt();
                return true;
            }
        } finally {
            guard.unlock();
        }
        if (cancellation != null) {
            cancellation.run();
        }
        return true;
    }

    /**
     * The body has left the calling thread, but not ended.
     *
     * @param cancel what is done in place of an interrupt; at once if there has been one. Must not block
     */
    void leaveThread(Runnable cancel) {
        boolean late;
        guard.lock();
        try {
            late = told != Told.NOTHING;
            forgetThread(late);
            cancellation = cancel;
        } finally {
            guard.unlock();
        }
        if (late) {
            cancel.run();
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
            // Whoever throws that has consumed our interrupt: one that is there now is somebody else's.
            forgetThread(told != Told.NOTHING && !(failure instanceof InterruptedException));
            state = State.ENDED;
        } finally {
            guard.unlock();
        }
    }

    /** An interrupt of ours that the body did not consume must not hit what its thread does next. */
    private void forgetThread(boolean clear) {
        if (thread != null && clear) {
            Thread.interrupted();
        }
        thread = null;
    }
}
