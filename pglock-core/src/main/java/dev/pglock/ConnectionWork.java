package dev.pglock;

import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * Work on the connection that holds a lock.
 *
 * @param <T> its result
 */
@FunctionalInterface
public interface ConnectionWork<T extends @Nullable Object> {

    /**
     * Does the work.
     *
     * @param connection not in autocommit mode; neither to be kept nor to be closed. What is not committed when the work
     *     returns is committed then, and rolled back if it throws
     * @return the result
     * @throws SQLException if a statement failed
     */
    T on(Connection connection) throws SQLException;
}
