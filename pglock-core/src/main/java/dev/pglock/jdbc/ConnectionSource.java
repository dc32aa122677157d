package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Gives statements a connection that is fit for them: READ COMMITTED, read-write, outside every transaction of the caller,
 * with timeouts. Thread-safe.
 */
public interface ConnectionSource extends AutoCloseable {

    /** Who asks. Nobody on one lane can keep the other from its connection, where there is more than one. */
    enum Lane {
        /** The renewal of what is held. */
        HEARTBEAT,
        /** Everything else. */
        WORK
    }

    /**
     * Does a piece of work. What it wrote is committed when this returns. A connection that turns out to be broken, left
     * read-only by a failover, or without its prepared statements is got rid of, and the work is done once more on a fresh
     * one; serialization failures and deadlocks are tried again a few times. Blocks for {@code budget} at most, plus what
     * pool and driver need to give up opening a connection. The caller's interrupt neither stops it nor gets lost.
     *
     * @param lane who asks
     * @param budget how long all of it may take, waiting for a connection included
     * @param work what to do
     * @param <T> what it results in
     * @return the work's result
     * @throws SQLException if it failed; {@link SqlStates} tells how to read it
     * @throws UnsupportedDatabaseException if this is not a PostgreSQL that is supported
     */
    <T extends @Nullable Object> T run(Lane lane, Duration budget, SqlWork<T> work) throws SQLException;

    /**
     * Opens a connection for the work of somebody else: in no transaction, not in autocommit mode, without our timeouts, and
     * taken from nobody else here. Blocks for the budget at most.
     *
     * @param budget how long it may take
     * @return the connection; the caller closes it
     * @throws SQLException if that failed
     */
    Connection open(Duration budget) throws SQLException;

    /** Closes the connections of its own; work that is still under way on one of them fails. Idempotent. */
    @Override
    void close();
}
