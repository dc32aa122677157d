package dev.pglock.jdbc;

import dev.pglock.LockStorageException;

/** The database is not a PostgreSQL that this project works with. It will not get better by trying again. */
public class UnsupportedDatabaseException extends LockStorageException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param message what stands there, and the ways out
     */
    public UnsupportedDatabaseException(String message) {
        super(message, null);
    }
}
