package dev.pglock;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One replica standing for election, from start to stop, on a thread of its own: it waits for the lock, leads for a term,
 * gives the lock up, and begins anew.
 *
 * <pre>
 *   waiting ── granted ──→ leading ── over ──→ listeners are told ──→ lock is given up ──→ waiting
 *      └── failed ──→ pausing ──→ waiting
 * </pre>
 */
final class Candidacy {

    private static final Logger log = LoggerFactory.getLogger(LeaderElection.class);

    private static final Duration LEAST_PAUSE = Duration.ofMillis(200);
    private static final Duration GREATEST_PAUSE = Duration.ofSeconds(2);
    private static final Duration LEAST_PAUSE_AFTER_FAILED_CALLBACK = Duration.ofSeconds(1);
    private static final Duration GREATEST_PAUSE_AFTER_FAILED_CALLBACK = Duration.ofSeconds(30);

    /** Longer than anybody who waits for a lock pauses between two attempts. */
    private static final Duration PAUSE_AFTER_RESIGNATION = Duration.ofSeconds(3);

    /** A claim that hangs needs nobody who waits for it: what it is granted is given back. */
    private static final Duration WAIT_FOR_A_CLAIM = Duration.ofMillis(500);

    private final LockRegistry registry;
    private final String role;
    private final LockRequest request;
    private final List<LeaderListener> listeners;
    private final Thread thread;

    private final ReentrantLock guard = new ReentrantLock();
    private final Condition changed = guard.newCondition();

    /** All three guarded. */
    private boolean stopping;

    private boolean interruptible;
    private boolean leading;

    private volatile @Nullable LeaderTerm term;
    private volatile @Nullable LeaderCallbacks callbacks;

    private final Backoff outages = new Backoff(LEAST_PAUSE, GREATEST_PAUSE);
    private final Backoff failures =
            new Backoff(LEAST_PAUSE_AFTER_FAILED_CALLBACK, GREATEST_PAUSE_AFTER_FAILED_CALLBACK);
    private boolean refused;

    Candidacy(LockRegistry registry, String role, LockRequest request, List<LeaderListener> listeners) {
        this.registry = registry;
        this.role = role;
        this.request = request;
        this.listeners = listeners;
        this.thread = daemon("pglock-elects-" + role, this::run);
    }

    static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    void start() {
        thread.start();
    }

    @Nullable
    LeaderTerm term() {
        return term;
    }

    boolean resign() {
        LeaderTerm now = term;
        return now != null && resign(now);
    }

    private boolean resign(LeaderTerm now) {
        if (!now.isActive() || !now.end(LeaderTerm.End.RESIGNED)) {
            return false;
        }
        wake();
        return true;
    }

    boolean stop(Duration patience) {
        // What is longer than that has no nanoseconds.
        Duration grace =
                patience.compareTo(LockRequest.GREATEST_DURATION) < 0 ? patience : LockRequest.GREATEST_DURATION;
        LeaderTerm now = term;
        if (now != null) {
            boolean ignored = now.end(LeaderTerm.End.STOPPED);
        }
        guard.lock();
        try {
            stopping = true;
            changed.signalAll();
            if (interruptible) {
                thread.interrupt();
            }
        } finally {
            guard.unlock();
        }
        LeaderCallbacks running = callbacks;
        return (running == null || !running.isCurrentThread()) && awaitEnd(grace);
    }

    private boolean awaitEnd(Duration grace) {
        long deadline = System.nanoTime() + grace.toNanos();
        boolean over;
        try {
            guard.lock();
            try {
                long left = grace.toNanos();
                while (leading && left > 0) {
                    left = changed.awaitNanos(left);
                }
                over = !leading;
            } finally {
                guard.unlock();
            }
            if (over) {
                long left = Math.min(WAIT_FOR_A_CLAIM.toNanos(), deadline - System.nanoTime());
                thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(left)));
                return true;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        log.warn(
                "The listeners of role '{}' have not ended {} ms after the stop: its lock is kept until they have",
                role,
                grace.toMillis());
        return false;
    }

    // ---- the thread

    private void run() {
        while (!isStopping()) {
            try {
                stand();
            } catch (Throwable t) {
                // What failed could not even be told. Without this thread the role would never be stood for again.
                pause(outages.next());
            }
        }
    }

    private void stand() {
        long began = System.nanoTime();
        try {
            LeaderLock lock = interruptibly(() -> LeaderLock.take(registry, request));
            outages.reset();
            refused = false;
            lead(lock);
        } catch (InterruptedException e) {
            log.debug("Waiting for role '{}' was interrupted", role);
        } catch (LockTimeoutException e) {
            log.debug("Role '{}' is waited for again: configuration limits the wait", role);
            // To nothing, perhaps. A wait that was as long as the pause is one.
            pause(outages.next().minusNanos(System.nanoTime() - began));
        } catch (RuntimeException | Error e) {
            report(e);
            pause(outages.next());
        }
    }

    /** The registry itself tells of an outage, once. What it refuses, or cannot understand, nobody else tells. */
    private void report(Throwable failure) {
        boolean isTold = failure instanceof LockException && !(failure instanceof LockRefusedException);
        if (isTold || refused) {
            log.debug("Role '{}' could not be stood for, and is tried again", role, failure);
        } else {
            refused = true;
            log.warn("Role '{}' cannot be stood for, and is tried again: {}", role, failure.toString());
        }
    }

    private void lead(LeaderLock lock) {
        LeaderTerm granted = lock.term(role);
        if (!begin()) {
            giveUp(lock);
            return;
        }
        LeaderCallbacks told = new LeaderCallbacks(granted, listeners, this::wake);
        try {
            callbacks = told;
            term = granted;
            log.info("This replica leads '{}' (fence {})", role, granted.fence());
            lock.onLost(this::wake);
            lock.onResign(() -> {
                boolean ignored = resign(granted);
            });
            told.start();
            awaitEndOf(granted);
            term = null;
            told.end();
            told.awaitEnd();
            log.info("This replica leads '{}' (fence {}) no more: {}", role, granted.fence(), describe(granted));
        } finally {
            try {
                giveUp(lock);
            } finally {
                callbacks = null;
                end();
            }
        }
        pauseAfter(granted);
    }

    private void awaitEndOf(LeaderTerm granted) {
        guard.lock();
        try {
            while (!stopping && granted.isActive()) {
                changed.awaitNanos(Math.max(1, granted.left().toNanos()));
            }
            boolean ignored = granted.end(stopping ? LeaderTerm.End.STOPPED : LeaderTerm.End.NOT_RENEWED);
        } catch (InterruptedException e) {
            // By nobody of ours: whoever does not want this thread does not want its leadership.
            boolean ignored = granted.end(LeaderTerm.End.NOT_RENEWED);
        } finally {
            guard.unlock();
        }
    }

    private void giveUp(LeaderLock lock) {
        LockStorageException failure = lock.giveUp();
        if (failure != null) {
            log.debug("The lock of role '{}' could not be released and ends by its expiry", role, failure);
        }
    }

    private void pauseAfter(LeaderTerm ended) {
        if (ended.end() == LeaderTerm.End.CALLBACK_FAILED) {
            pause(failures.next());
            return;
        }
        failures.reset();
        if (ended.end() == LeaderTerm.End.RESIGNED) {
            pause(PAUSE_AFTER_RESIGNATION);
        }
    }

    private static String describe(LeaderTerm ended) {
        LeaderTerm.End end = ended.end();
        return end == null
                ? "it is over"
                : switch (end) {
                    case STOPPED -> "it was stopped";
                    case RESIGNED -> "it has resigned";
                    case CALLBACK_FAILED -> "a listener failed";
                    case NOT_RENEWED -> "its lock was lost, or could not be renewed in time";
                };
    }

    // ---- between the threads

    private boolean begin() {
        guard.lock();
        try {
            leading = !stopping;
            return leading;
        } finally {
            guard.unlock();
        }
    }

    private void end() {
        guard.lock();
        try {
            leading = false;
            changed.signalAll();
        } finally {
            guard.unlock();
        }
    }

    private void wake() {
        guard.lock();
        try {
            changed.signalAll();
        } finally {
            guard.unlock();
        }
    }

    private boolean isStopping() {
        guard.lock();
        try {
            return stopping;
        } finally {
            guard.unlock();
        }
    }

    private void pause(Duration pause) {
        guard.lock();
        try {
            long left = pause.toNanos();
            while (!stopping && left > 0) {
                left = changed.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            // It was long enough for somebody.
        } finally {
            guard.unlock();
        }
    }

    private interface Waiting {
        LeaderLock run() throws InterruptedException;
    }

    /** A stop interrupts this, and nothing else. */
    private LeaderLock interruptibly(Waiting waiting) throws InterruptedException {
        interruptible(true);
        try {
            return waiting.run();
        } finally {
            interruptible(false);
        }
    }

    private void interruptible(boolean now) throws InterruptedException {
        guard.lock();
        try {
            interruptible = now;
            boolean interrupted = Thread.interrupted();
            if (now && (stopping || interrupted)) {
                interruptible = false;
                throw new InterruptedException();
            }
        } finally {
            guard.unlock();
        }
    }

    /** Pauses that grow, never those of all replicas at one instant. */
    private static final class Backoff {

        private final Duration least;
        private final Duration greatest;
        private Duration next;

        Backoff(Duration least, Duration greatest) {
            this.least = least;
            this.greatest = greatest;
            this.next = least;
        }

        void reset() {
            next = least;
        }

        /** Between half of the pause and all of it. */
        Duration next() {
            long nanos = next.toNanos();
            Duration doubled = next.multipliedBy(2);
            next = doubled.compareTo(greatest) > 0 ? greatest : doubled;
            return Duration.ofNanos(nanos / 2 + ThreadLocalRandom.current().nextLong(nanos / 2 + 1));
        }
    }
}
