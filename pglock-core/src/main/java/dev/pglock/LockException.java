package dev.pglock;

import org.jspecify.annotations.Nullable;

/** The root of what this project throws at run time. Messages never hold a secret. */
public class LockException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception.
     *
     * @param message what happened and what to do
     * @param cause what brought it about
     */
    public LockException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
