package dev.pglock;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Something in another PostgreSQL database that is written under a lock. A table there keeps the greatest fence that it has
 * seen, and whoever comes with a smaller one is refused: the holder of a tenure that has ended, as soon as the next one has
 * written. That needs no connection to the locks, so it holds whatever becomes of them.
 *
 * <pre>{@code
 * FencedResource ledger = new FencedResource("ledger");
 *
 * ledger.admit(connection, LockContext.current());   // first thing in the transaction
 * statement.executeUpdate("UPDATE ledger SET …");
 * connection.commit();
 * }</pre>
 *
 * <p>The table is made by {@code dev/pglock/fenced_resource.sql}, in this jar; the connection's search path must find it. A
 * resource belongs to one lock name, because fences of different names say nothing of each other. It asks for a fence that
 * outlives a crash of the server, which only a lease has. After a restore of the locks' database, or a fail-over to a standby
 * that was behind, fences may start lower: delete the resource's row then. Immutable and thread-safe.
 */
public final class FencedResource {

    /** The row stays locked until the transaction ends, so that an older holder waits here for a younger one, and sees it. */
    private static final String ADMIT = """
            INSERT INTO pglock_fenced_resource AS r (resource, fence) VALUES (?, ?)
            ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence, seen_at = clock_timestamp()
            WHERE r.fence <= excluded.fence
            """;

    private static final String GREATEST = """
            SELECT fence FROM pglock_fenced_resource WHERE resource = ?
            """;

    private final String name;

    /**
     * Names a resource.
     *
     * @param name the same wherever it is written
     */
    public FencedResource(String name) {
        this.name = Objects.requireNonNull(name, "name");
    }

    /**
     * Lets the transaction of a lock's holder write the resource, unless a later tenure has written it before. Other
     * transactions that write it wait until this one has ended. Blocks for one round trip, and for those.
     *
     * @param transaction a connection in a transaction, to the database of the resource
     * @param lock under which it is written
     * @throws LockLostException if the lock is held no longer, or the resource has seen a greater fence; the transaction is
     *     to be rolled back
     * @throws IllegalStateException if the connection is in autocommit mode: what follows would not be covered
     * @throws SQLException if the database failed; under REPEATABLE READ and SERIALIZABLE also if somebody else wrote the
     *     resource meanwhile
     */
    public void admit(Connection transaction, LockHandle lock) throws SQLException {
        lock.ensureHeld();
        if (transaction.getAutoCommit()) {
            throw new IllegalStateException(
                    "Resource '" + name
                            + "' is fenced together with what is written to it: in autocommit mode these would be two transactions");
        }
        if (!raise(transaction, lock.fence())) {
            throw new LockLostException(
                    lock.name(),
                    lock.fence(),
                    "resource '" + name + "' has been written under a later tenure, with fence "
                            + greatestFence(transaction));
        }
    }

    private boolean raise(Connection transaction, long fence) throws SQLException {
        try (PreparedStatement statement = transaction.prepareStatement(ADMIT)) {
            statement.setString(1, name);
            statement.setLong(2, fence);
            return statement.executeUpdate() == 1;
        }
    }

    private @Nullable Long greatestFence(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(GREATEST)) {
            statement.setString(1, name);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? row.getObject("fence", Long.class) : null;
            }
        }
    }

    @Override
    public String toString() {
        return "FencedResource[" + name + "]";
    }
}
