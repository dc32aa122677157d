package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * A piece of work on one connection. It leaves the connection's settings alone and neither commits nor rolls back.
 *
 * @param <T> what it results in
 */
@FunctionalInterface
public interface SqlWork<T extends @Nullable Object> {

    /**
     * Does the work. It is called again on a fresh connection when the first one turned out to be broken.
     *
     * @param connection the connection; not to be kept
     * @param unanswered true if an earlier call of this same work broke off while it was under way: what it sent may or
     *     may not have been carried out, or may yet be
     * @return the result
     * @throws SQLException if a statement failed; it must reach the caller unchanged
     */
    T run(Connection connection, boolean unanswered) throws SQLException;
}
