package dev.pglock.engine;

import dev.pglock.Acquisition;
import dev.pglock.Acquisition.Outcome;
import dev.pglock.Denial;
import dev.pglock.LockAttempt;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.LockTimeoutException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** How one call for a lock ends: an error, unless something else is noted before it is told. Of one thread. */
final class Settlement {

    private final Listeners listeners;
    private final LockRequest request;
    private final LockStrategy strategy;
    private final long began = System.nanoTime();
    private Outcome outcome = Outcome.ERROR;
    private @Nullable Denial denial;
    private boolean waited;

    Settlement(Listeners listeners, LockRequest request, LockStrategy strategy) {
        this.listeners = listeners;
        this.request = request;
        this.strategy = strategy;
    }

    /** The caller is not served at once. */
    void waits() {
        waited = true;
    }

    LockAttempt answered(LockAttempt attempt) {
        if (attempt instanceof LockAttempt.Denied denied) {
            waited = true;
            denial = denied.denial();
        }
        return attempt;
    }

    /** The only attempt was answered. */
    void settled(LockAttempt attempt) {
        if (attempt instanceof LockAttempt.Denied denied) {
            outcome = Outcome.HELD;
            denial = denied.denial();
        } else {
            outcome = Outcome.ACQUIRED;
        }
    }

    void acquired() {
        outcome = Outcome.ACQUIRED;
    }

    void notAcquired(LockNotAcquiredException e) {
        outcome = e instanceof LockTimeoutException ? Outcome.TIMEOUT : Outcome.HELD;
    }

    void interrupted() {
        outcome = Outcome.TIMEOUT;
    }

    void tell() {
        Denial why = outcome == Outcome.ACQUIRED || outcome == Outcome.ERROR ? null : denial;
        Duration took = Duration.ofNanos(System.nanoTime() - began);
        listeners.tell(l -> l.settled(new Acquisition(request, strategy, outcome, took, waited, why)));
    }
}
