package dev.pglock;

/**
 * The database works, but what was asked for cannot be had this way: a limit is reached, or something is missing that would
 * be needed. The message names the way out; asking again will not help.
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
