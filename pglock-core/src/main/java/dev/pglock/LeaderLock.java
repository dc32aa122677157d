package dev.pglock;

import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The lock of a leader, taken so that no former leader believes in its term any more. For a lease that is the grant alone: a
 * former leader has stepped down before its lease has ended.
 *
 * <p>An advisory lock says nothing of the kind, because a session may have ended without its holder knowing. There a leader
 * has a second lock, the mark, on the same session; whoever has it without the first does not lead. Who steps down releases
 * the first and keeps the mark until somebody has taken the first and had the time to see it, or for a moment. So whoever finds the mark held by another
 * replica knows that this one has stepped down, and waits until it gets the mark; whoever finds it free knows nothing, and
 * waits until the trust of any former leader has ended.
 */
final class LeaderLock {

    private static final Logger log = LoggerFactory.getLogger(LeaderElection.class);

    private static final Duration PAUSE = Duration.ofMillis(20);
    private static final Duration PAUSE_BETWEEN_CLAIMS = Duration.ofMillis(50);

    /** Whoever has got the first lock asks for the mark one round trip later, and must find it held. */
    private static final Duration MARK_IS_SHOWN = Duration.ofMillis(150);

    /** Longer than anybody who waits for a lock pauses between two attempts. */
    private static final Duration MARK_IS_KEPT = Duration.ofMillis(1500);

    private final LockRegistry registry;
    private final LockHandle lock;
    private final Duration lease;
    private final @Nullable LockHandle mark;

    private LeaderLock(LockRegistry registry, LockHandle lock, Duration lease, @Nullable LockHandle mark) {
        this.registry = registry;
        this.lock = lock;
        this.lease = lease;
        this.mark = mark;
    }

    /** Waits for it, with exceptions as {@link LockRegistry#acquire}, or because it was lost while it was settled. */
    static LeaderLock take(LockRegistry registry, LockRequest request) throws InterruptedException {
        LockHandle lock = registry.acquire(request);
        boolean taken = false;
        try {
            // Only the difference of two of the server's instants; a heartbeat may have come between and makes it
            // longer.
            Duration lease = Duration.between(lock.acquiredAt(), lock.expiresAt());
            LockHandle mark = lock.strategy() == LockStrategy.ADVISORY ? settle(registry, request, lock, lease) : null;
            taken = true;
            return new LeaderLock(registry, lock, lease, mark);
        } finally {
            if (!taken) {
                lock.close();
            }
        }
    }

    static String markOf(LockRequest request) {
        return request.name() + "/mark";
    }

    private static LockHandle settle(LockRegistry registry, LockRequest request, LockHandle lock, Duration lease)
            throws InterruptedException {
        LockRequest wanted = LockRequest.of(markOf(request))
                .strategy(LockStrategy.ADVISORY)
                .waitTimeout(LockRequest.UNLIMITED)
                .maxHold(LockRequest.GREATEST_DURATION)
                .onLost(OnLost.CONTINUE);
        long grantedAt = System.nanoTime();
        boolean steppedDown = false;
        while (true) {
            LockAttempt attempt = registry.attempt(wanted);
            if (attempt instanceof LockAttempt.Granted granted) {
                LockHandle mark = granted.lock();
                boolean settled = false;
                try {
                    if (!steppedDown) {
                        sleepUntilTrustHasEnded(lock, grantedAt + lease.toNanos());
                    }
                    // By a round trip: both are on one session from now on, or this throws.
                    lock.extend(lease);
                    mark.ensureHeld();
                    settled = true;
                    return mark;
                } finally {
                    if (!settled) {
                        mark.close();
                    }
                }
            }
            // Anything else than another replica of ours is no word of a former leader.
            steppedDown |= ((LockAttempt.Denied) attempt).denial().reason() == DenialReason.HELD;
            lock.ensureHeld();
            Thread.sleep((steppedDown ? PAUSE : PAUSE_BETWEEN_CLAIMS).toMillis());
        }
    }

    private static void sleepUntilTrustHasEnded(LockHandle lock, long until) throws InterruptedException {
        for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
            lock.ensureHeld();
            Thread.sleep(Math.min(PAUSE_BETWEEN_CLAIMS.toMillis(), left / 1_000_000 + 1));
        }
    }

    LeaderTerm term(String role) {
        return new LeaderTerm(role, lock, lease);
    }

    /** Runs once, if the lock is lost. */
    void onLost(Runnable action) {
        lock.onLost(action);
    }

    /** Nobody leads by this lock any more. It ends by its expiry where the database cannot be told. */
    @Nullable
    LockStorageException giveUp() {
        LockStorageException failure = null;
        boolean released = false;
        try {
            released = lock.release();
        } catch (LockStorageException e) {
            failure = e;
        }
        if (mark != null) {
            if (released) {
                keepUntilTaken();
            }
            mark.close();
        }
        return failure;
    }

    /** Until somebody else has the first lock, or nobody seems to want it. */
    private void keepUntilTaken() {
        long until = System.nanoTime() + MARK_IS_KEPT.toNanos();
        try {
            while (System.nanoTime() - until < 0) {
                Optional<LockInfo> now = registry.find(lock.name());
                if (now.isPresent() && now.get().state() == LockState.HELD) {
                    Thread.sleep(MARK_IS_SHOWN.toMillis());
                    return;
                }
                Thread.sleep(PAUSE.toMillis());
            }
        } catch (LockStorageException e) {
            log.debug(
                    "Nobody is told that the leader by lock '{}' has stepped down: the next one waits", lock.name(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
