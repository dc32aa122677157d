package dev.pglock;

import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Why a claim was not granted.
 *
 * @param name the lock's name
 * @param reason why
 * @param holder the holder's label, where it is known; a label, never proof of ownership
 * @param fence the fence of the tenure in the way, where it is known
 * @param expiresIn how long that tenure lasts from now unless it is renewed, by the server's clock; told only with
 *     {@link DenialReason#HELD} and {@link DenialReason#HOLD}
 */
public record Denial(
        String name,
        DenialReason reason,
        @Nullable String holder,
        @Nullable Long fence,
        @Nullable Duration expiresIn) {

    /**
     * Checks that name and reason are there.
     *
     * @param name the lock's name
     * @param reason why
     * @param holder the holder's label
     * @param fence the fence of the tenure in the way
     * @param expiresIn how long that tenure lasts
     */
    public Denial {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(reason, "reason");
    }

    /**
     * A denial of which nothing but the reason is known.
     *
     * @param name the lock's name
     * @param reason why it was denied
     * @return the denial
     */
    public static Denial of(String name, DenialReason reason) {
        return new Denial(name, reason, null, null, null);
    }

    /**
     * The denial in words, for logs and exceptions.
     *
     * @return for instance {@code held by orders-7f (fence 812) for at most 24.1 s}
     */
    public String describe() {
        return switch (reason) {
            case HELD -> "held by " + (holder == null ? "somebody" : "'" + holder + "'") + fenceText() + untilText();
            case KEY_BUSY ->
                "its key is taken by " + (holder == null ? "a session, a transaction or a claim in progress" : holder);
            case TICK_DONE -> "this tick has already run";
            case DONE -> "this version has already succeeded";
            case HOLD -> "kept free" + untilText() + " after the last run";
            case PAUSED -> "paused by an operator";
            case STOPPING -> "this replica is stopping";
            case UNKNOWN -> "another claim came first";
        };
    }

    private String fenceText() {
        return fence == null ? "" : " (fence " + fence + ")";
    }

    private String untilText() {
        return expiresIn == null ? "" : " for at most " + expiresIn.toMillis() + " ms";
    }
}
