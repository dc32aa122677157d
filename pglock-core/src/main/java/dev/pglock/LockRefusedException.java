package dev.pglock;

/**
 * The database works, but what was asked for cannot be had this way, or not now: a limit is reached, something is missing
 * that would be needed, or another transaction keeps the lock's row locked. The message names the way out.
 */
public class LockRefusedException extends LockStorageException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param message what was refused, why, and the way out
     */
    public LockRefusedException(String message) {
        super(message, null);
    }
}
