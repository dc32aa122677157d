package dev.pglock.store;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What became of one {@link Renewal}.
 *
 * @param name the lock's name
 * @param fence the tenure's fence
 * @param result what became of it
 * @param expiresAt the server's time at which the tenure now ends; only with {@link Result#RENEWED}
 * @param resign why an operator asks for the lock to be given back; null: nobody does
 */
public record RenewalAnswer(
        String name,
        long fence,
        Result result,
        @Nullable Instant expiresAt,
        @Nullable String resign) {

    /**
     * What became of a renewal, without anybody asking for the lock.
     *
     * @param name the lock's name
     * @param fence the tenure's fence
     * @param result what became of it
     * @param expiresAt the server's time at which the tenure now ends
     */
    public RenewalAnswer(String name, long fence, Result result, @Nullable Instant expiresAt) {
        this(name, fence, result, expiresAt, null);
    }

    /** What can become of a renewal. */
    public enum Result {
        /** The tenure lasts longer now. */
        RENEWED,
        /** Still ours, but somebody else has the row locked at the moment: ask again soon. */
        SKIPPED,
        /** The tenure is over, finally. */
        LOST,
        /** The session that carried the tenure has ended, and the tenure with it, finally. */
        SESSION_ENDED
    }
}
