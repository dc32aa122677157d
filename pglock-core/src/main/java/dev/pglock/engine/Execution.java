package dev.pglock.engine;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The body that runs under a lock, as far as interrupting it goes: at most one interrupt, only between its beginning and
 * its end, and none of ours stays on the thread afterwards. A body whose work goes on elsewhere, after it has returned,
 * has no thread to interrupt any more: from then on it is cancelled instead.
 */
final class Execution {

    private final ReentrantLock guard = new ReentrantLock();
    private boolean running;
    private @Nullable Thread thread;
    private @Nullable Runnable cancellation;
    private boolean interrupted;

    /** The calling thread runs the body from now on; false if one runs already. */
    boolean begin() {
        guard.lock();
        try {
            if (running) {
                return false;
            }
            running = true;
            thread = Thread.currentThread();
            return true;
        } finally {
            guard.unlock();
        }
    }

    /** Interrupts the body if one is running and has not been interrupted yet; tells whether it did. */
    boolean interrupt() {
        guard.lock();
        try {
            if (!running || interrupted) {
                return false;
            }
            interrupted = true;
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
            forgetThread(interrupted);
            cancellation = cancel;
            late = interrupted;
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
            forgetThread(interrupted && !(failure instanceof InterruptedException));
            running = false;
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

    boolean isRunning() {
        guard.lock();
        try {
            return running;
        } finally {
            guard.unlock();
        }
    }
}
