package dev.pglock.store;

import dev.pglock.Denial;
import java.time.Instant;

/** The answer to a {@link Claim}. */
public sealed interface ClaimAnswer {

    /**
     * The lock is ours.
     *
     * @param fence strictly greater than every earlier one of the name
     * @param acquiredAt the server's time of the grant
     * @param expiresAt the server's time at which the tenure ends unless it is renewed
     */
    record Granted(long fence, Instant acquiredAt, Instant expiresAt) implements ClaimAnswer {}

    /**
     * The lock is not ours, and nothing was written.
     *
     * @param denial why
     */
    record Denied(Denial denial) implements ClaimAnswer {}
}
