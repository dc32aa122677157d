package dev.pglock.engine;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The body that runs under a lock, as far as interrupting it goes: at most one interrupt, only between its beginning and
 * its end, and none of ours stays on the thread afterwards.
 */
final class Execution {

    private final ReentrantLock guard = new ReentrantLock();
    private @Nullable Thread thread;
    private boolean interrupted;

    /** The calling thread runs the body from now on; false if one runs already. */
    boolean begin() {
        guard.lock();
        try {
            if (thread != null) {
                return false;
            }
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
            if (thread == null || interrupted) {
                return false;
            }
            interrupted = true;
            thread.interrupt();
            return true;
        } finally {
            guard.unlock();
        }
    }

    /** The body has ended. An interrupt of ours that it did not consume must not hit what the thread does next. */
    void end() {
        guard.lock();
        try {
            thread = null;
            if (interrupted) {
                Thread.interrupted();
            }
        } finally {
            guard.unlock();
        }
    }

    boolean isRunning() {
        guard.lock();
        try {
            return thread != null;
        } finally {
            guard.unlock();
        }
    }
}
