package dev.pglock.jdbc;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A small HikariCP pool of our own: its connections are opened when they are needed and closed when nobody has needed
 * them for some seconds. In front of it stand permits, so that no other borrower can take the heartbeat's place.
 */
public final class OwnConnections extends RecoveringSource {

    private static final Logger log = LoggerFactory.getLogger(OwnConnections.class);
    private static final long VALIDATION_MILLIS = 250;
    private static final long LEAST_WAIT_MILLIS = 2_000;
    private static final long GREATEST_WAIT_MILLIS = 5_000;

    /** Below the age at which the pool replaces a connection anyway. */
    private static final long GREATEST_IDLE_MILLIS = 20 * 60_000;

    private final SessionFactory sessions;
    private final SessionDataSource opener;
    private final HikariDataSource pool;
    private final Semaphore work;
    private final Semaphore heartbeat;
    private final LocalTransaction transaction;

    /** The last try to open a connection failed. */
    private volatile boolean failing;

    /**
     * Creates the pool. Opens nothing.
     *
     * @param sessions opens its connections
     * @param size how many at most; from 2 on one of them is kept for the heartbeat, with 1 everybody shares it
     */
    public OwnConnections(SessionFactory sessions, int size) {
        if (size < 1) {
            throw new IllegalArgumentException("There must be at least 1 connection, not " + size);
        }
        this.sessions = sessions;
        this.work = new Semaphore(Math.max(1, size - 1), true);
        this.heartbeat = size == 1 ? work : new Semaphore(1, true);
        this.transaction = new LocalTransaction(sessions.settings().timeouts());
        this.opener = new SessionDataSource(sessions);
        this.pool = new HikariDataSource(config(sessions, opener, size));
    }

    private static HikariConfig config(SessionFactory sessions, SessionDataSource opener, int size) {
        JdbcTimeouts timeouts = sessions.settings().timeouts();
        HikariConfig config = new HikariConfig();
        config.setPoolName("pglock");
        config.setDataSource(opener);
        config.setMaximumPoolSize(size);
        config.setMinimumIdle(0);
        config.setIdleTimeout(Math.min(timeouts.idle().toMillis(), GREATEST_IDLE_MILLIS));
        config.setInitializationFailTimeout(-1);
        // The permits see to it that a place is free: what is waited for here is the opening of a connection. It may
        // outlast the budget of a short lease's heartbeat, because TLS to a busy server takes its time.
        config.setConnectionTimeout(Math.max(
                LEAST_WAIT_MILLIS,
                Math.min(GREATEST_WAIT_MILLIS, timeouts.statement().toMillis() / 2)));
        config.setValidationTimeout(VALIDATION_MILLIS);
        // Which connections are of no use any more is decided in one place, and told once for an outage.
        config.setExceptionOverride(new NoEviction());
        return config;
    }

    @Override
    Loan lend(Lane lane, boolean fresh, Budget budget) throws SQLException {
        Semaphore permits = lane == Lane.HEARTBEAT ? heartbeat : work;
        boolean queued = permits.availablePermits() == 0;
        awaitPermit(permits, budget);
        boolean lent = false;
        try {
            if (fresh) {
                // What broke one of them has most likely broken all.
                pool.getHikariPoolMXBean().softEvictConnections();
            }
            Budget mine = ofAttempt(fresh, budget);
            Duration patience = patience(fresh, mine);
            if (lane == Lane.WORK && (queued || fresh)) {
                // Part of it was spent in the queue, or on a connection that was dead: the end stays where it was.
                patience = least(patience, Duration.ofMillis(budget.millisLeft()));
            }
            OwnLoan loan = new OwnLoan(connect(fresh, patience), permits);
            // From here on, the loan gives the permit back.
            lent = true;
            return loan.begun(mine);
        } finally {
            if (!lent) {
                permits.release();
            }
        }
    }

    @Override
    boolean lendsWhatMayBeBroken() {
        return false;
    }

    /**
     * While none can be opened, or where one has just been found broken, the pool is not asked: it would keep everybody
     * waiting for longer than they have time, and pause for up to 5 s between two tries, also when the database is back.
     * What it says of a connection that it could not open hides what the driver said.
     */
    private Connection connect(boolean fresh, Duration patience) throws SQLException {
        boolean doubtful = failing || fresh;
        if (doubtful) {
            failing = true;
            opener.prepare(patience);
            failing = false;
        }
        try {
            return pool.getConnection();
        } catch (SQLTransientConnectionException e) {
            failing = true;
            if (e.getCause() instanceof SQLException cause) {
                throw cause;
            }
            throw new SQLException(
                    "No connection could be opened within " + pool.getConnectionTimeout() + " ms", "08001", e);
        } finally {
            if (doubtful) {
                opener.forget();
            }
        }
    }

    /** What is left of the budget, but never so little that a busy server cannot answer. */
    private Duration patience(boolean fresh, Budget budget) {
        JdbcTimeouts timeouts = sessions.settings().timeouts();
        Duration left = Duration.ofNanos(budget.nanosLeft());
        Duration least = fresh ? timeouts.statement() : timeouts.work();
        return left.compareTo(least) > 0 ? left : least;
    }

    private static Duration least(Duration one, Duration other) {
        return one.compareTo(other) <= 0 ? one : other;
    }

    /** Interrupts do not end it, the budget does: a release that waits here must not be lost to an interrupted body. */
    private static void awaitPermit(Semaphore permits, Budget budget) throws SQLException {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (permits.tryAcquire(budget.nanosLeft(), TimeUnit.NANOSECONDS)) {
                        return;
                    }
                    throw new SQLTransientConnectionException(
                            "No own connection became free in time: those in use wait for the database themselves, or"
                                    + " pglock.datasource.pool-size is too small");
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private final class OwnLoan implements Loan {

        private final Connection connection;
        private final Semaphore permits;
        private boolean inTransaction;

        OwnLoan(Connection connection, Semaphore permits) {
            this.connection = connection;
            this.permits = permits;
        }

        @Override
        public Connection connection() {
            return connection;
        }

        /** Behind a pooler, the session is ours for a transaction only. */
        OwnLoan begun(Budget budget) throws SQLException {
            boolean begun = false;
            try {
                connection.setNetworkTimeout(SessionFactory.DIRECT, budget.millisLeft());
                if (SessionFactory.isBehindPooler(connection)) {
                    transaction.begin(connection);
                    inTransaction = true;
                }
                begun = true;
                return this;
            } finally {
                if (!begun) {
                    close(true);
                }
            }
        }

        @Override
        public void giveBack() throws SQLException {
            if (inTransaction) {
                transaction.commit(connection);
                inTransaction = false;
            }
            close(false);
        }

        @Override
        public void discard(boolean unusable) {
            close(unusable || !rolledBack());
        }

        private boolean rolledBack() {
            try {
                if (inTransaction) {
                    transaction.rollback(connection);
                }
                return true;
            } catch (SQLException e) {
                log.debug("A connection could not be rolled back and is closed", e);
                return false;
            }
        }

        private void close(boolean unusable) {
            try {
                if (unusable) {
                    // Which closes it as well.
                    pool.evictConnection(connection);
                } else {
                    connection.close();
                }
            } catch (SQLException e) {
                log.debug("A connection could not be given back properly", e);
            } finally {
                permits.release();
            }
        }
    }

    /** Outside the pool, so that heartbeats have theirs. */
    @Override
    public Connection open(Duration budget) throws SQLException {
        Connection session = sessions.open(budget);
        return PlatformThread.call(() -> {
            SessionFactory.leaveToWork(session);
            return session;
        });
    }

    @Override
    public void close() {
        pool.close();
        opener.forget();
    }
}
