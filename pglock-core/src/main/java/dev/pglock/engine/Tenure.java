package dev.pglock.engine;

import dev.pglock.LossReason;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What this replica knows of one tenure. One immutable value, replaced as a whole; the transitions are named and none
 * leads back to {@link Phase#HELD}.
 *
 * @param fence the fencing token
 * @param acquiredAt the server's time of the grant
 * @param expiresAt the server's time at which the last grant or renewal ends
 * @param trustedUntil {@link System#nanoTime()} from which the tenure must not be trusted any more
 * @param phase where it stands
 * @param loss why it was lost; only in {@link Phase#LOST}
 */
record Tenure(
        long fence,
        Instant acquiredAt,
        Instant expiresAt,
        long trustedUntil,
        Phase phase,
        @Nullable LossReason loss) {

    /** The states of a tenure. */
    enum Phase {
        HELD,
        LOST,
        RELEASED
    }

    private static final Duration LEAST_MARGIN = Duration.ofMillis(200);

    /**
     * A tenure that has just been granted.
     *
     * @param sentAt {@link System#nanoTime()} before the granting statement was sent
     */
    static Tenure granted(long fence, Instant acquiredAt, Instant expiresAt, long sentAt, Duration lease) {
        return new Tenure(fence, acquiredAt, expiresAt, trustedUntil(sentAt, lease), Phase.HELD, null);
    }

    /**
     * The tenure after a renewal that the server accepted. An answer that comes after the trust has ended revives
     * nothing, and a shorter renewal takes nothing away.
     */
    Tenure renewed(Instant newExpiresAt, long sentAt, Duration lease, long now) {
        if (!isTrusted(now)) {
            return this;
        }
        long until = trustedUntil(sentAt, lease);
        return new Tenure(
                fence, acquiredAt, newExpiresAt, until - trustedUntil > 0 ? until : trustedUntil, Phase.HELD, null);
    }

    Tenure lost(LossReason reason) {
        return phase == Phase.HELD ? new Tenure(fence, acquiredAt, expiresAt, trustedUntil, Phase.LOST, reason) : this;
    }

    Tenure released() {
        return phase == Phase.HELD
                ? new Tenure(fence, acquiredAt, expiresAt, trustedUntil, Phase.RELEASED, null)
                : this;
    }

    boolean isTrusted(long now) {
        return phase == Phase.HELD && now - trustedUntil < 0;
    }

    /** The duration granted less a margin for what the two clocks may differ in rate, and for the way of the answer. */
    static Duration trusted(Duration lease) {
        Duration twoPercent = lease.dividedBy(50);
        Duration margin = twoPercent.compareTo(LEAST_MARGIN) > 0 ? twoPercent : LEAST_MARGIN;
        return lease.minus(margin);
    }

    private static long trustedUntil(long sentAt, Duration lease) {
        return sentAt + trusted(lease).toNanos();
    }
}
