package dev.pglock.lease;

import dev.pglock.LockLostException;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlWork;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.store.StoreIdentity;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The last thing that a transaction does before it commits under a lease: it takes the name's key, shared and until its
 * end, so that nobody can be granted the name before, and then sees that the tenure still lasts. The key is always tried,
 * never waited for, and heartbeats are not touched.
 *
 * @see TransactionLock why the row may have to be read elsewhere
 */
public final class FencedCommit {

    private static final String TRY_KEY = """
            SELECT pg_try_advisory_xact_lock_shared(?::bigint) AS got,
                   current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') AS sees_news
            """;

    private static final String STILL_OURS = """
            SELECT FROM pglock_lease
            WHERE namespace = ?::text AND name = ?::text AND fence = ?::bigint AND holder = ?::uuid
              AND expires_at > clock_timestamp()
            """;

    private static final int ATTEMPTS = 6;
    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(2);

    private final ConnectionSource own;
    private final String stillOurs;
    private final StoreIdentity identity;
    private final Duration budget;

    /**
     * Creates the check of one replica.
     *
     * @param own for the look where the transaction's own would be of no use
     * @param table the lease table, with its schema
     * @param identity whose tenures
     * @param budget how long that look may take
     */
    public FencedCommit(ConnectionSource own, LeaseTable table, StoreIdentity identity, Duration budget) {
        this.own = own;
        this.stillOurs = table.in(STILL_OURS);
        this.identity = identity;
        this.budget = budget;
    }

    /**
     * Checks that a transaction may commit.
     *
     * @param transaction the connection that is about to
     * @param held under which tenure
     * @throws LockLostException if the tenure has ended
     * @throws SQLException if that could not be found out
     */
    public void check(Connection transaction, Tenancy held) throws SQLException {
        SqlWork<Boolean> look = (connection, unanswered) -> isStillOurs(connection, held);
        boolean ours = tryKey(transaction, held.key())
                ? look.run(transaction, false)
                : own.run(ConnectionSource.Lane.WORK, budget, look);
        if (!ours) {
            throw new LockLostException(
                    held.name(), held.fence(), "the tenure ended before the commit, which is rolled back");
        }
    }

    /** Returns whether the transaction sees what was committed meanwhile. */
    private static boolean tryKey(Connection transaction, long key) throws SQLException {
        try (PreparedStatement statement = transaction.prepareStatement(TRY_KEY)) {
            statement.setLong(1, key);
            for (int attempt = 1; ; attempt++) {
                try (ResultSet row = statement.executeQuery()) {
                    if (row.next() && row.getBoolean("got")) {
                        return row.getBoolean("sees_news");
                    }
                }
                if (attempt == ATTEMPTS) {
                    throw new SQLException(
                            "The key of the lock is taken by somebody else: nothing can be committed", "55P03");
                }
                LockSupport.parkNanos(PAUSE);
            }
        }
    }

    private boolean isStillOurs(Connection connection, Tenancy held) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(stillOurs)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, held.name());
            statement.setLong(3, held.fence());
            statement.setObject(4, identity.holder());
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }
}
