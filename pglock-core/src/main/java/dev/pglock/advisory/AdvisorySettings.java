package dev.pglock.advisory;

import dev.pglock.jdbc.JdbcTimeouts;
import java.time.Duration;

/**
 * How a replica keeps its advisory locks.
 *
 * @param table the lease table as it is written in SQL, best with its schema; it need not exist
 * @param lease how long the server lets the session be silent while it holds something, and so how soon a frozen holder
 *     is freed
 * @param maxLocks how many locks at most: the server's lock table is shared by everybody
 * @param timeouts how long things may take
 */
public record AdvisorySettings(String table, Duration lease, int maxLocks, JdbcTimeouts timeouts) {}
