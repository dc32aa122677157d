package dev.pglock.engine;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A platform daemon thread that does its work at the moments which it is asked for. It starts with the first request,
 * and nothing that goes wrong in a beat ends it: the one heartbeat that fails must not be the last.
 */
abstract class Pulse {

    private static final Logger log = LoggerFactory.getLogger(Pulse.class);
    private static final long AFTER_A_FAULT = TimeUnit.MILLISECONDS.toNanos(500);
    private static final long NEVER = Long.MAX_VALUE;

    private final String name;
    private final long origin = System.nanoTime();
    private final ReentrantLock guard = new ReentrantLock();
    private final Condition changed = guard.newCondition();

    /** The next beat in nanoseconds since {@link #origin}. Written under the guard, read without it. */
    private volatile long nextAt = NEVER;

    private volatile @Nullable Thread thread;

    private boolean stopped;

    Pulse(String name) {
        this.name = name;
    }

    /**
     * Does what is due.
     *
     * @param now {@link System#nanoTime()}
     * @return when to beat again at the latest, as a {@link System#nanoTime()}; null: not before being asked
     */
    abstract @Nullable Long beat(long now);

    /** Asks for a beat at that {@link System#nanoTime()} at the latest. Cheap when one will come sooner anyway. */
    final void wakeBy(long at) {
        long moment = at - origin;
        if (nextAt <= moment && isAlive()) {
            return;
        }
        guard.lock();
        try {
            if (stopped) {
                return;
            }
            if (!isAlive()) {
                // Remembered when it runs: where the process has no thread left, the next request tries again.
                Thread started = Threads.daemon(name, this::run);
                started.start();
                thread = started;
            }
            if (moment < nextAt) {
                nextAt = moment;
                changed.signal();
            }
        } finally {
            guard.unlock();
        }
    }

    private boolean isAlive() {
        Thread started = thread;
        return started != null && started.isAlive();
    }

    /** Ends the thread and waits for it, but not longer than that. */
    final void stop(long millis) {
        Thread running;
        guard.lock();
        try {
            stopped = true;
            running = thread;
            changed.signal();
        } finally {
            guard.unlock();
        }
        if (running == null || running == Thread.currentThread()) {
            return;
        }
        try {
            running.join(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        while (awaitBeat()) {
            try {
                Long next = beat(System.nanoTime());
                if (next != null) {
                    wakeBy(next);
                }
            } catch (RuntimeException | Error e) {
                wakeBy(System.nanoTime() + AFTER_A_FAULT);
                tell(e);
            }
        }
    }

    private void tell(Throwable fault) {
        try {
            log.error("{} went wrong and goes on", name, fault);
        } catch (RuntimeException | Error e) {
            // What the fault says of itself may be as faulty. That nobody hears of it must not end the beats.
        }
    }

    private boolean awaitBeat() {
        guard.lock();
        try {
            while (!stopped) {
                long wait = nextAt == NEVER ? NEVER : nextAt - (System.nanoTime() - origin);
                if (wait <= 0) {
                    nextAt = NEVER;
                    return true;
                }
                try {
                    long ignored = changed.awaitNanos(wait);
                } catch (InterruptedException e) {
                    // Nobody has a reason to interrupt this thread, and it has none to end before it is stopped.
                    log.debug("{} was interrupted and goes on", name);
                }
            }
            return false;
        } finally {
            guard.unlock();
        }
    }
}
