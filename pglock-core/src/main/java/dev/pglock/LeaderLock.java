package dev.pglock;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The lock of a leader, taken so that no former leader believes in its term any more. For a lease that is the grant alone: a
 * former leader has stepped down before its lease has ended.
 *
 * <p>An advisory lock says nothing of the kind, because a session may have ended without its holder knowing. So whoever is
 * granted one waits until the trust of any former leader has ended, unless that one is there to tell that it has stepped down:
 *
 * <pre>
 *   former leader                          next leader
 *   listeners have been told
 *   takes the mark
 *   releases the lock            ──►       takes the lock, finds the mark held
 *   keeps the mark until         ◄──       takes the answer
 *   releases the mark            ──►       leads
 * </pre>
 *
 * <p>Nobody has the mark who leads, or who waits to lead. A session that dies gives back one lock after the other, so a mark
 * that a leader had all the time could be seen held beside a lock that is free, and say what is not true.
 */
final class LeaderLock {

    private static final Logger log = LoggerFactory.getLogger(LeaderElection.class);

    /** Between two looks while former and next leader speak to each other, each of them awake; later on, fewer. */
    private static final Duration LEAST_PAUSE = Duration.ofMillis(5);

    private static final Duration GREATEST_PAUSE = Duration.ofMillis(100);

    private static final Duration PAUSE_WHILE_TRUST_LASTS = Duration.ofMillis(50);

    /** Longer than anybody who waits for a lock pauses between two attempts. */
    private static final Duration MARK_IS_KEPT = Duration.ofMillis(1500);

    private final LockRegistry registry;
    private final LockHandle lock;
    private final Duration lease;

    private LeaderLock(LockRegistry registry, LockHandle lock, Duration lease) {
        this.registry = registry;
        this.lock = lock;
        this.lease = lease;
    }

    /** Waits for it, with exceptions as {@link LockRegistry#acquire}, or because it was lost while it was settled. */
    static LeaderLock take(LockRegistry registry, LockRequest request) throws InterruptedException {
        LockHandle lock = registry.acquire(request);
        boolean taken = false;
        try {
            // Only the difference of two of the server's instants; a heartbeat may have come between and makes it
            // longer.
            Duration lease = Duration.between(lock.acquiredAt(), lock.expiresAt());
            if (lock.strategy() == LockStrategy.ADVISORY) {
                settle(registry, lock, lease);
            }
            taken = true;
            return new LeaderLock(registry, lock, lease);
        } finally {
            if (!taken) {
                lock.close();
            }
        }
    }

    static String markOf(String name) {
        return name + "/mark";
    }

    private static String answerOf(String name) {
        return name + "/seen";
    }

    private static LockRequest beside(String name) {
        return LockRequest.of(name).strategy(LockStrategy.ADVISORY).onLost(OnLost.CONTINUE);
    }

    private static void settle(LockRegistry registry, LockHandle lock, Duration lease) throws InterruptedException {
        long grantedAt = System.nanoTime();
        if (isMarked(registry, markOf(lock.name()))) {
            answer(registry, lock);
        } else {
            sleepUntilTrustHasEnded(lock, lease, grantedAt + lease.toNanos());
        }
        // By a round trip: had the session ended while the mark was held, another might have answered it as well.
        lock.extend(lease);
    }

    /** Looked at first: who takes it only to see whether it is free could be taken for somebody who has stepped down. */
    private static boolean isMarked(LockRegistry registry, String mark) {
        if (!isHeld(registry, mark)) {
            return false;
        }
        LockAttempt attempt = registry.attempt(beside(mark));
        if (attempt instanceof LockAttempt.Granted granted) {
            granted.lock().close();
            return false;
        }
        // Anything else than a replica of ours is no word of a former leader.
        return ((LockAttempt.Denied) attempt).denial().reason() == DenialReason.HELD;
    }

    private static boolean isHeld(LockRegistry registry, String name) {
        Optional<LockInfo> now = registry.find(name);
        return now.isPresent() && now.get().state() == LockState.HELD;
    }

    /** Until the mark is given back: whoever comes next must not take it for a word of ours. */
    private static void answer(LockRegistry registry, LockHandle lock) throws InterruptedException {
        Optional<LockHandle> answer = registry.tryAcquire(beside(answerOf(lock.name())));
        long began = System.nanoTime();
        try {
            while (isHeld(registry, markOf(lock.name()))) {
                lock.ensureHeld();
                pauseSince(began);
            }
        } finally {
            answer.ifPresent(LockHandle::close);
        }
    }

    /** Half of the time that has passed: who answers soon is heard soon, and nobody is asked for all the time. */
    private static void pauseSince(long began) throws InterruptedException {
        long half = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) / 2;
        Thread.sleep(Math.max(LEAST_PAUSE.toMillis(), Math.min(GREATEST_PAUSE.toMillis(), half)));
    }

    private static void sleepUntilTrustHasEnded(LockHandle lock, Duration lease, long until)
            throws InterruptedException {
        log.info(
                "Lock '{}' is this replica's, which leads in {} ms: nobody has told that he has stepped down, and an"
                        + " advisory lock does not tell whether a former leader knows that it is over",
                lock.name(),
                lease.toMillis());
        for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
            lock.ensureHeld();
            Thread.sleep(Math.min(PAUSE_WHILE_TRUST_LASTS.toMillis(), left / 1_000_000 + 1));
        }
    }

    LeaderTerm term(String role) {
        return new LeaderTerm(role, lock, lease);
    }

    /** Runs once, if the lock is lost. */
    void onLost(Runnable action) {
        lock.onLost(action);
    }

    /** Runs once, if an operator asks for the lock. */
    void onResign(Runnable action) {
        lock.onResign(action);
    }

    /** Nobody leads by this lock any more. It ends by its expiry where the database cannot be told. */
    @Nullable
    LockStorageException giveUp() {
        LockHandle mark = lock.strategy() == LockStrategy.ADVISORY ? mark() : null;
        try {
            if (lock.release() && mark != null) {
                keepUntilAnswered();
            }
            return null;
        } catch (LockStorageException e) {
            return e;
        } finally {
            if (mark != null) {
                mark.close();
            }
        }
    }

    /** Only while the lock is ours: afterwards another may lead by it already. Null: nobody is told. */
    private @Nullable LockHandle mark() {
        if (!lock.isHeld()) {
            return null;
        }
        try {
            return registry.tryAcquire(beside(markOf(lock.name()))).orElse(null);
        } catch (RuntimeException e) {
            // Whatever it is, the lock itself is to be released.
            log.debug(
                    "Nobody is told that the leader by lock '{}' has stepped down: the next one waits", lock.name(), e);
            return null;
        }
    }

    /** Until the next leader has seen the mark, or nobody seems to want to be it. */
    private void keepUntilAnswered() {
        long began = System.nanoTime();
        try {
            while (System.nanoTime() - began < MARK_IS_KEPT.toNanos()) {
                if (isHeld(registry, answerOf(lock.name()))) {
                    return;
                }
                pauseSince(began);
            }
        } catch (LockStorageException e) {
            log.debug("Whether the leader after the one by lock '{}' knows of it is not known", lock.name(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
