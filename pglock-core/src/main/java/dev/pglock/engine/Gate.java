package dev.pglock.engine;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Whether new locks are taken. Closing it wakes whoever pauses between two attempts. */
final class Gate {

    private final ReentrantLock guard = new ReentrantLock();
    private final Condition closed = guard.newCondition();
    private volatile boolean open = true;

    boolean isOpen() {
        return open;
    }

    void open() {
        open = true;
    }

    void close() {
        guard.lock();
        try {
            open = false;
            closed.signalAll();
        } finally {
            guard.unlock();
        }
    }

    /** Sleeps for that long, or until the gate is closed. */
    void pause(long nanos) throws InterruptedException {
        guard.lock();
        try {
            long left = nanos;
            while (open && left > 0) {
                left = closed.awaitNanos(left);
            }
        } finally {
            guard.unlock();
        }
    }
}
