package dev.pglock.jdbc;

import java.time.Duration;

/**
 * How long things may take. All of it follows from the lease, because an answer that comes after the lease has ended is
 * of no use to anybody.
 *
 * @param statement when the server gives up a statement
 * @param lock when the server gives up waiting for a row that somebody else has locked
 * @param work how long a piece of work may take when its caller sets no other limit: connecting, a statement, and the same
 *     again on a fresh connection
 * @param connect how long opening a connection may take
 * @param idle after what time without use an own connection is closed: long enough to outlast the pause between two
 *     heartbeats
 */
public record JdbcTimeouts(Duration statement, Duration lock, Duration work, Duration connect, Duration idle) {

    private static final Duration LEAST = Duration.ofMillis(250);
    private static final Duration GREATEST = Duration.ofSeconds(5);
    private static final Duration GREATEST_LOCK = Duration.ofSeconds(1);
    /** TLS and a login to a busy server take their time, however short a lease is. */
    private static final Duration LEAST_CONNECT = Duration.ofSeconds(2);

    private static final Duration GREATEST_CONNECT = Duration.ofSeconds(5);
    private static final Duration LEAST_IDLE = Duration.ofSeconds(10);

    /**
     * Derives them.
     *
     * @param lease the shortest lease that will be asked for
     * @return a third of the lease for a statement, 250 ms to 5 s; half of that and at most 1 s for a row lock
     */
    public static JdbcTimeouts of(Duration lease) {
        Duration third = lease.dividedBy(3);
        Duration statement = least(GREATEST, greatest(LEAST, third));
        Duration attempt = answer(statement);
        return new JdbcTimeouts(
                statement,
                least(GREATEST_LOCK, statement.dividedBy(2)),
                attempt.multipliedBy(2),
                least(GREATEST_CONNECT, greatest(LEAST_CONNECT, attempt)),
                greatest(LEAST_IDLE, third.plus(statement)));
    }

    /**
     * How long an answer is waited for before its session is given up: a little longer than the server works on a statement,
     * so that it is the server who tells why.
     *
     * @return a quarter more than {@link #statement}
     */
    public Duration answer() {
        return answer(statement);
    }

    private static Duration answer(Duration statement) {
        return statement.plus(statement.dividedBy(4));
    }

    private static Duration least(Duration a, Duration b) {
        return a.compareTo(b) <= 0 ? a : b;
    }

    private static Duration greatest(Duration a, Duration b) {
        return a.compareTo(b) >= 0 ? a : b;
    }
}
