package dev.pglock;

import org.jspecify.annotations.Nullable;

/** The database failed. Nothing is known about the lock from this; it is never to be read as "held by another". */
public class LockStorageException extends LockException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param message what was tried, and what to do where that is known
     * @param cause the failure of the driver or the pool
     */
    public LockStorageException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
