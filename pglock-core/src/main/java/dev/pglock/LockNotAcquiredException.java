package dev.pglock;

import org.jspecify.annotations.Nullable;

/** The lock was not granted, so the work was not done. The message tells why and, where it is known, who holds it. */
public class LockNotAcquiredException extends LockException {

    private static final long serialVersionUID = 1L;

    /** The lock. */
    private final String name;

    /** Null where no claim was made. */
    private final @Nullable DenialReason reason;

    /**
     * Creates the exception for a denial.
     *
     * @param denial why the lock was not granted
     */
    public LockNotAcquiredException(Denial denial) {
        this(denial.name(), denial.reason(), "Lock '" + denial.name() + "' was not acquired: " + denial.describe());
    }

    /**
     * Creates the exception with a message of its own.
     *
     * @param name the lock's name
     * @param reason why, where a claim was denied; null where none was made
     * @param message the whole message
     */
    public LockNotAcquiredException(String name, @Nullable DenialReason reason, String message) {
        super(message, null);
        this.name = name;
        this.reason = reason;
    }

    /**
     * The lock's name.
     *
     * @return the name as it was asked for
     */
    public String lockName() {
        return name;
    }

    /**
     * Why the claim was denied.
     *
     * @return the reason, or null where no claim was made
     */
    public @Nullable DenialReason reason() {
        return reason;
    }
}
