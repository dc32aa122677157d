package dev.pglock;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread on which the listeners are told of one term: of its grant, and when it is over, of its end. */
final class LeaderCallbacks {

    private static final Logger log = LoggerFactory.getLogger(LeaderElection.class);

    private final LeaderTerm term;
    private final List<LeaderListener> listeners;
    private final Runnable wake;
    private final Thread thread;
    private final CountDownLatch over = new CountDownLatch(1);
    private final Deque<LeaderListener> told = new ArrayDeque<>();

    private final ReentrantLock guard = new ReentrantLock();
    private boolean granting = true;

    /**
     * Prepares it.
     *
     * @param wake called when a listener has failed and the term is over for that
     */
    LeaderCallbacks(LeaderTerm term, List<LeaderListener> listeners, Runnable wake) {
        this.term = term;
        this.listeners = List.copyOf(listeners);
        this.wake = wake;
        this.thread = Candidacy.daemon("pglock-leads-" + term.role(), this::run);
    }

    void start() {
        thread.start();
    }

    boolean isCurrentThread() {
        return Thread.currentThread() == thread;
    }

    /** The term is over: a listener that still works is interrupted, and when it has returned all are told. */
    void end() {
        guard.lock();
        try {
            if (granting) {
                thread.interrupt();
            }
        } finally {
            guard.unlock();
        }
        over.countDown();
    }

    /** Waits until all have been told, however long that takes. */
    void awaitEnd() {
        boolean interrupted = false;
        while (true) {
            try {
                thread.join();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        try {
            grant();
        } catch (Throwable t) {
            tell(() -> failed(t));
        }
        granted();
        awaitOver();
        while (!told.isEmpty()) {
            LeaderListener listener = told.pop();
            try {
                listener.revoked(term);
            } catch (Throwable t) {
                tell(() -> log.warn("A listener failed when it was told that the term of {} is over", describe(), t));
            }
        }
    }

    /** Whatever cannot be told, the other listeners are. */
    private static void tell(Runnable message) {
        try {
            message.run();
        } catch (Throwable t) {
            // There is nobody else to tell.
        }
    }

    private void grant() throws Exception {
        for (LeaderListener listener : listeners) {
            if (!term.isActive()) {
                return;
            }
            told.push(listener);
            listener.granted(term);
        }
    }

    private void failed(Throwable failure) {
        if (term.isActive() && term.end(LeaderTerm.End.CALLBACK_FAILED)) {
            wake.run();
            log.warn(
                    "A listener failed when it was told that this replica leads {}: the leadership is given up, and"
                            + " tried again later",
                    describe(),
                    failure);
        } else {
            log.debug("A listener of {} ended with its term", describe(), failure);
        }
    }

    /** From here on nobody is interrupted, and an interrupt that nobody has consumed is forgotten. */
    private void granted() {
        guard.lock();
        try {
            granting = false;
            boolean ignored = Thread.interrupted();
        } finally {
            guard.unlock();
        }
    }

    private void awaitOver() {
        while (true) {
            try {
                over.await();
                return;
            } catch (InterruptedException e) {
                log.debug("{} is led on although its thread was interrupted", describe());
            }
        }
    }

    private String describe() {
        return "'" + term.role() + "' (fence " + term.fence() + ")";
    }
}
