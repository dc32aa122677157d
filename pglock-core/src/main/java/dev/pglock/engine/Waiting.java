package dev.pglock.engine;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockStorageException;
import dev.pglock.LockTimeoutException;
import dev.pglock.store.WakeUps;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * How a lock is waited for that is held elsewhere: by asking, and sleeping until it is worth asking again. Between two
 * questions nothing is held but the local permit: no connection, no transaction.
 *
 * <pre>
 *   ask ──denied──► watch (once) ──► sleep until ─┬─ told of a release ──► ask
 *    ▲                                            ├─ the holder's expiry
 *    └────────────────────────────────────────────┴─ the poll: after a second at most
 * </pre>
 *
 * What is released between a denial and the beginning of the watch is not lost: whoever begins to be watched is told to ask
 * again.
 */
final class Waiting {

    private static final long MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long LEAST_PAUSE = TimeUnit.MILLISECONDS.toNanos(50);
    private static final long GREATEST_PAUSE = TimeUnit.SECONDS.toNanos(1);

    /** A holder without an expiry may vanish at any moment; who waits for it shall have the lock within a second. */
    private static final long GREATEST_BLIND_PAUSE = TimeUnit.MILLISECONDS.toNanos(950);

    /** Of those who are told of the same release, one gets the lock: 16 ms apart at most. */
    private static final int GREATEST_STAGGER = 4;

    private final Gate gate;
    private final WakeUps wakeUps;

    Waiting(Gate gate, WakeUps wakeUps) {
        this.gate = gate;
        this.wakeUps = wakeUps;
    }

    /**
     * Asks until the lock is granted or the time is over. The last question is asked when it is over.
     *
     * @param question asks once
     */
    LockHandle until(Deadline deadline, String name, long key, Supplier<LockAttempt> question)
            throws InterruptedException {
        try (Wait wait = new Wait(deadline, name, key)) {
            return wait.until(question);
        }
    }

    /** Why somebody whose time is over, or who is sent away by the end of this replica, has no lock. */
    LockNotAcquiredException notAcquired(Denial denial, Deadline deadline) {
        return gate.isOpen()
                ? new LockTimeoutException(denial, Duration.ofNanos(deadline.elapsed()))
                : new LockNotAcquiredException(Denial.of(denial.name(), DenialReason.STOPPING));
    }

    /** One thread's wait. */
    private final class Wait implements AutoCloseable {

        private final Deadline deadline;
        private final String name;
        private final long key;
        private final Gate.Bell bell = gate.new Bell();
        private WakeUps.@Nullable Watch watch;
        private long pause = LEAST_PAUSE;
        private int lostRaces;

        Wait(Deadline deadline, String name, long key) {
            this.deadline = deadline;
            this.name = name;
            this.key = key;
        }

        LockHandle until(Supplier<LockAttempt> question) throws InterruptedException {
            for (boolean first = true; ; first = false) {
                if (!gate.isOpen()) {
                    throw new LockNotAcquiredException(Denial.of(name, DenialReason.STOPPING));
                }
                try {
                    LockAttempt attempt = question.get();
                    if (attempt instanceof LockAttempt.Granted granted) {
                        return granted.lock();
                    }
                    denied(((LockAttempt.Denied) attempt).denial());
                } catch (LockStorageException e) {
                    // Whoever waits already survives a short outage; whoever has just come is told at once.
                    if (first || deadline.isOver()) {
                        throw e;
                    }
                    sleep(pause + jitter(pause / 4));
                }
            }
        }

        private void denied(Denial denial) throws InterruptedException {
            if (denial.reason() == DenialReason.DONE) {
                throw new LockNotAcquiredException(denial);
            }
            if (deadline.isOver()) {
                throw notAcquired(denial, deadline);
            }
            // The end of a hold is known, and nobody tells it.
            if (watch == null && denial.reason() != DenialReason.HOLD) {
                watch = wakeUps.watch(key, bell);
            }
            sleep(pauseAfter(denial));
        }

        private void sleep(long nanos) throws InterruptedException {
            pause = Math.min(GREATEST_PAUSE, pause * 2);
            if (bell.await(deadline.remaining(nanos)) == Gate.Ring.RELEASED) {
                pause = LEAST_PAUSE;
                bell.pause(deadline.remaining(jitter(MILLISECOND << lostRaces)));
                lostRaces = Math.min(GREATEST_STAGGER, lostRaces + 1);
            }
        }

        /**
         * Until the expiry where that is near, otherwise until the poll, which comes soon only where nothing else tells when
         * it is worth asking; never all waiters at one instant.
         */
        private long pauseAfter(Denial denial) {
            boolean foreseen =
                    denial.reason() == DenialReason.HOLD || (denial.reason() == DenialReason.HELD && wakeUps.areOn());
            long poll = foreseen ? GREATEST_PAUSE : pause;
            Duration expiresIn = denial.expiresIn();
            if (expiresIn == null) {
                return Math.max(LEAST_PAUSE, Math.min(poll, GREATEST_BLIND_PAUSE) - jitter(poll / 10));
            }
            if (expiresIn.toNanos() > poll) {
                return poll + jitter(poll / 10);
            }
            return Math.max(LEAST_PAUSE, expiresIn.toNanos()) + jitter(poll / 10);
        }

        @Override
        public void close() {
            if (watch != null) {
                watch.close();
            }
        }
    }

    private static long jitter(long greatest) {
        return ThreadLocalRandom.current().nextLong(greatest + 1);
    }
}
