package dev.pglock.engine;

import dev.pglock.store.WakeUps;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Whether new locks are taken. Closing it wakes whoever pauses between two attempts. */
final class Gate {

    private final ReentrantLock guard = new ReentrantLock();
    private final Set<Bell> pausing = new HashSet<>();
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
            pausing.forEach(bell -> bell.changed.signal());
        } finally {
            guard.unlock();
        }
    }

    /** What one waiter sleeps beside. It rings on until it is asked why, so that no ring is lost between two sleeps. */
    final class Bell implements WakeUps.Waiter {

        private final Condition changed = guard.newCondition();
        private Ring ring = Ring.NONE;

        @Override
        public void watched() {
            ring(Ring.WATCHED);
        }

        @Override
        public void released() {
            ring(Ring.RELEASED);
        }

        private void ring(Ring why) {
            guard.lock();
            try {
                ring = why;
                changed.signal();
            } finally {
                guard.unlock();
            }
        }

        /** Sleeps for that long, or until the bell rings or the gate is closed, and silences it. */
        Ring await(long nanos) throws InterruptedException {
            guard.lockInterruptibly();
            try {
                sleep(nanos, true);
                Ring why = ring;
                ring = Ring.NONE;
                return why;
            } finally {
                guard.unlock();
            }
        }

        /** Sleeps for that long, or until the gate is closed. */
        void pause(long nanos) throws InterruptedException {
            guard.lockInterruptibly();
            try {
                sleep(nanos, false);
            } finally {
                guard.unlock();
            }
        }

        private void sleep(long nanos, boolean listening) throws InterruptedException {
            pausing.add(this);
            try {
                long left = nanos;
                while (open && left > 0 && !(listening && ring != Ring.NONE)) {
                    left = changed.awaitNanos(left);
                }
            } finally {
                pausing.remove(this);
            }
        }
    }

    /** Why a bell rings. */
    enum Ring {
        /** It does not: the time is over. */
        NONE,
        /** What was released so far went untold. */
        WATCHED,
        /** The lock was released. */
        RELEASED
    }
}
