package dev.pglock.advisory;

import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.lease.LeaseTable;
import java.time.Duration;

/**
 * How a replica keeps its advisory locks.
 *
 * @param table the lease table; it need not exist
 * @param lease how long the server lets the session be silent while it holds something, and so how soon a frozen holder
 *     is freed
 * @param maxLocks how many keys at most, on all sessions together: the server's lock table is shared by everybody
 * @param timeouts how long things may take
 */
public record AdvisorySettings(LeaseTable table, Duration lease, int maxLocks, JdbcTimeouts timeouts) {

    /** By default. */
    public static final int MAX_LOCKS = 100;

    /**
     * Checks that something can be held.
     *
     * @param table the lease table
     * @param lease the lease
     * @param maxLocks how many locks at most
     * @param timeouts how long things may take
     */
    public AdvisorySettings {
        if (maxLocks < 1) {
            throw new IllegalArgumentException("pglock.advisory.max-locks must be at least 1, not " + maxLocks);
        }
    }
}
