package dev.pglock.lease;

import dev.pglock.ConnectionWork;
import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.PlatformThread;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.jdbc.SqlWork;
import dev.pglock.jdbc.Telling;
import dev.pglock.jdbc.Waiters;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps locks as rows of a table. A claim of a known name, a renewal of everything held and a release are one statement
 * and one round trip each; a claim of a name never seen is two. Thread-safe.
 */
public final class LeaseStore implements LockStore {

    private static final Logger log = LoggerFactory.getLogger(LeaseStore.class);
    private static final String LOCK_NOT_AVAILABLE = "55P03";
    private static final int RELEASES_AT_MOST = 3;
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int SWEPT_AT_ONCE = 1000;

    /** Between two sweeps, while there is more to sweep: so that nobody else's work notices. */
    private static final Duration NEXT_SWEEP = Duration.ofSeconds(1);

    /** For a lock that nobody holds. */
    private static final Renewal OF_NOTHING = new Renewal("", 0, Duration.ofSeconds(1), null);

    private static final String UNDEFINED_TABLE = "42P01";

    private final ConnectionSource connections;
    private final StoreIdentity identity;
    private final LeaseTable table;
    private final JdbcTimeouts timeouts;
    private final Duration retention;

    private final LeaseClaims claims;
    private final Telling telling = new Telling();

    /** The last sweep removed as much as one may. */
    private volatile boolean moreToSweep;

    private final AtomicBoolean sweepIsSlow = new AtomicBoolean();

    private volatile @Nullable LeaseSql resolved;
    private volatile @Nullable FencedCommit fence;

    /** It remembers which database is ours. */
    private volatile @Nullable TransactionLock transactionLock;

    /**
     * Creates the store of one replica. Asks nothing yet.
     *
     * @param connections how to reach the database; closed with the store
     * @param identity who claims
     * @param table the table, best as {@link LeaseSchema#initialize} returned it; without a schema it is looked up at first
     *     use
     * @param timeouts how long things may take
     * @param retention how long a free row that remembers nothing is kept; 0: for ever
     */
    public LeaseStore(
            ConnectionSource connections,
            StoreIdentity identity,
            LeaseTable table,
            JdbcTimeouts timeouts,
            Duration retention) {
        this.connections = connections;
        this.identity = identity;
        this.claims = new LeaseClaims(identity);
        this.table = table;
        this.timeouts = timeouts;
        this.retention = retention;
        this.resolved = table.isQualified() ? new LeaseSql(table) : null;
    }

    @Override
    public LockStrategy strategy() {
        return LockStrategy.LEASE;
    }

    // ---- claim

    @Override
    public ClaimAnswer claim(Claim claim) {
        long knownBefore = claims.ownFence();
        try {
            return connections.run(Lane.WORK, timeouts.work(), (connection, unanswered) -> {
                LeaseSql sql = sql(connection);
                // Adopted rather than claimed anew: what the first claim wrote beside the grant would deny the second.
                ClaimAnswer.Granted adopted = unanswered ? claims.adopt(connection, sql, claim, knownBefore) : null;
                return adopted != null ? adopted : claims.claim(connection, sql, claim);
            });
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
                return new ClaimAnswer.Denied(Denial.of(claim.name(), DenialReason.KEY_BUSY));
            }
            throw failure("Lock '" + claim.name() + "' could not be claimed", e);
        }
    }

    // ---- renew

    @Override
    public List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        if (renewals.isEmpty()) {
            return List.of();
        }
        Lane lane = caller == Caller.HEARTBEAT ? Lane.HEARTBEAT : Lane.WORK;
        String what = renewals.size() == 1
                ? "Lock '" + renewals.get(0).name() + "' could not be renewed"
                : renewals.size() + " locks could not be renewed";
        return run(what, lane, budget, (connection, unanswered) -> renew(connection, renewals));
    }

    private List<RenewalAnswer> renew(Connection connection, List<Renewal> renewals) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql(connection).renew)) {
            statement.setString(1, identity.namespace());
            statement.setObject(2, identity.holder());
            statement.setArray(3, column(connection, "text", renewals, Renewal::name));
            statement.setArray(4, column(connection, "int8", renewals, Renewal::fence));
            statement.setArray(5, column(connection, "float8", renewals, renewal -> seconds(renewal.lease())));
            statement.setArray(6, column(connection, "bool", renewals, renewal -> renewal.payload() != null));
            statement.setArray(7, column(connection, "text", renewals, LeaseStore::newData));
            List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    Instant expiresAt = LeaseRows.instant(row, "expires_at");
                    RenewalAnswer.Result result = expiresAt != null
                            ? RenewalAnswer.Result.RENEWED
                            : row.getBoolean("still_mine") ? RenewalAnswer.Result.SKIPPED : RenewalAnswer.Result.LOST;
                    answers.add(new RenewalAnswer(
                            row.getString("name"), row.getLong("fence"), result, expiresAt, row.getString("resign")));
                }
            }
            return answers;
        }
    }

    private static @Nullable String newData(Renewal renewal) {
        return renewal.payload() == null ? null : renewal.payload().data();
    }

    private static java.sql.Array column(
            Connection connection, String type, List<Renewal> renewals, Function<Renewal, @Nullable Object> value)
            throws SQLException {
        Object[] values = new Object[renewals.size()];
        Arrays.setAll(values, i -> value.apply(renewals.get(i)));
        return connection.createArrayOf(type, values);
    }

    // ---- release

    @Override
    public boolean release(Release release) {
        // Whoever has the row locked, an operator or a backup say, is waited for without keeping the connection from
        // others. A statement that was cancelled, or took too long, has released nothing either.
        long began = System.nanoTime();
        for (int attempt = 1; ; attempt++) {
            try {
                return releaseOnce(release);
            } catch (LockStorageException e) {
                if (attempt == RELEASES_AT_MOST
                        || System.nanoTime() - began >= patienceAfter(e).toNanos()) {
                    throw e;
                }
                LockSupport.parkNanos(PAUSE_NANOS << attempt);
            }
        }
    }

    /** How long after its beginning a release that failed so is tried once more. */
    private Duration patienceAfter(LockStorageException e) {
        if (e.getCause() instanceof SQLTransientConnectionException cause && cause.getSQLState() == null) {
            // No connection became free in all that time: nothing has been asked yet, and what was done not remembered.
            return timeouts.work().multipliedBy(2);
        }
        boolean isBusy = e instanceof LockRefusedException
                || (e.getCause() instanceof SQLException cause && SqlStates.kindOf(cause) == SqlStates.Kind.BUSY);
        return isBusy ? timeouts.work() : Duration.ZERO;
    }

    private boolean releaseOnce(Release release) {
        return telling.tellIfPossible(form -> run(
                "Lock '" + release.name() + "' could not be released",
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) -> {
                    LeaseSql sql = sql(connection);
                    return release(connection, form.apply(sql.release), release)
                            || (unanswered && wasReleased(connection, sql, release));
                }));
    }

    private boolean release(Connection connection, String sql, Release release) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, release.name());
            statement.setObject(3, identity.holder());
            statement.setLong(4, release.fence());
            if (release.minHold() == null) {
                statement.setNull(5, Types.DOUBLE);
            } else {
                statement.setDouble(5, seconds(release.minHold()));
            }
            statement.setString(6, release.completed());
            statement.setString(7, release.outcome().name());
            statement.setString(8, release.error());
            statement.setInt(9, WakeUps.waitKey(release.key()));
            statement.setBoolean(10, release.isForgettable());
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }

    private boolean wasReleased(Connection connection, LeaseSql sql, Release release) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.wasReleased)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, release.name());
            statement.setLong(3, release.fence());
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        }
    }

    // ---- find

    @Override
    public Optional<LockInfo> find(String name) {
        return look("Lock '" + name + "' could not be looked up", name).stream().findFirst();
    }

    @Override
    public List<LockInfo> findAll() {
        return look("The locks could not be looked up", null);
    }

    private List<LockInfo> look(String what, @Nullable String name) {
        return run(
                what,
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) -> unlessTableIsMissing(
                        List.of(),
                        () -> new LeaseRows(sql(connection).table).read(connection, identity.namespace(), name)));
    }

    private interface Question<T> {
        T ask() throws SQLException;
    }

    /** Without the table there are no leases: where all locks are advisory ones, that is no failure. */
    private static <T> T unlessTableIsMissing(T otherwise, Question<T> question) throws SQLException {
        try {
            return question.ask();
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE) {
                return otherwise;
            }
            throw e;
        }
    }

    // ---- with the caller's connection, or one for him

    @Override
    public boolean tryInTransaction(Connection transaction, String name, long key) {
        String what = "Lock '" + name + "' could not be taken in a transaction";
        LeaseSql sql =
                resolved != null ? resolved : run(what, Lane.WORK, timeouts.work(), (own, unanswered) -> sql(own));
        try {
            TransactionLock known = transactionLock;
            if (known == null) {
                known = new TransactionLock(connections, sql.table, identity.namespace(), timeouts.work());
                transactionLock = known;
            }
            return known.tryAcquire(transaction, name, key);
        } catch (SQLException e) {
            throw failure(what, e);
        }
    }

    /** The work has a connection of its own, outside the pool: whoever renews the tenure meanwhile needs that one. */
    @Override
    public <T extends @Nullable Object> T onConnection(Tenancy held, ConnectionWork<T> work) throws SQLException {
        FencedCommit commits = fence();
        try (Connection connection = openForWork()) {
            boolean committed = false;
            try {
                T result = work.on(FencedConnection.around(connection, commits, held));
                committed = PlatformThread.call(() -> {
                    commits.check(connection, held);
                    connection.commit();
                    return true;
                });
                return result;
            } finally {
                if (!committed) {
                    rollBack(connection);
                }
            }
        }
    }

    private Connection openForWork() {
        try {
            return connections.open(timeouts.work());
        } catch (SQLException e) {
            throw failure("No connection could be opened for work under a lock", e);
        }
    }

    @Override
    public @Nullable String obstacleToFencing(Connection connection) throws SQLException {
        return fence().obstacle(connection);
    }

    @Override
    public void checkCommit(Connection transaction, Tenancy held) throws SQLException {
        fence().check(transaction, held);
    }

    /** Kept, because it knows where the locks are. */
    private FencedCommit fence() {
        FencedCommit known = fence;
        if (known == null) {
            LeaseSql sql =
                    run("A commit could not be fenced", Lane.WORK, timeouts.work(), (own, unanswered) -> sql(own));
            known = new FencedCommit(connections, sql.table, identity, timeouts.work());
            fence = known;
        }
        return known;
    }

    private static void rollBack(Connection connection) {
        try {
            connection.rollback();
        } catch (SQLException e) {
            log.debug("A connection could not be rolled back and is closed as it is", e);
        }
    }

    // ---- operators and housekeeping

    @Override
    public boolean forceRelease(String name, long key, boolean now) {
        return telling.tellIfPossible(form -> run(
                "Lock '" + name + "' could not be released by force",
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) -> unlessTableIsMissing(false, () -> {
                    String sql = form.apply(sql(connection).forceRelease);
                    try (PreparedStatement statement = connection.prepareStatement(sql)) {
                        statement.setBoolean(1, now);
                        statement.setString(2, identity.namespace());
                        statement.setString(3, name);
                        statement.setInt(4, WakeUps.waitKey(key));
                        try (ResultSet row = statement.executeQuery()) {
                            return row.next();
                        }
                    }
                })));
    }

    @Override
    public boolean pause(String name, @Nullable String reason) {
        String what = "Lock '" + name + "' could not be " + (reason == null ? "resumed" : "paused");
        return run(
                what,
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) ->
                        Pauses.set(connection, sql(connection).table, identity.namespace(), name, reason));
    }

    @Override
    public boolean resign(String name, long key, String reason) {
        return run(
                "The holder of lock '" + name + "' could not be asked for it",
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) -> unlessTableIsMissing(false, () -> {
                    try (PreparedStatement statement = connection.prepareStatement(sql(connection).resign)) {
                        statement.setString(1, reason);
                        statement.setString(2, identity.namespace());
                        statement.setString(3, name);
                        try (ResultSet row = statement.executeQuery()) {
                            return row.next();
                        }
                    }
                }));
    }

    @Override
    public Map<Integer, List<String>> waiting() {
        return run(
                "Who waits for locks could not be looked up",
                Lane.WORK,
                timeouts.work(),
                (connection, unanswered) -> Waiters.of(connection, identity.namespace()));
    }

    /** A renewal of nothing meets whatever a claim or a renewal would meet, and changes no row. */
    @Override
    public boolean probe() {
        return !renew(List.of(OF_NOTHING), timeouts.work(), Caller.HOLDER).isEmpty();
    }

    @Override
    public void tidyUp() {
        if (retention.isZero()) {
            return;
        }
        moreToSweep = false;
        try {
            moreToSweep = connections.run(Lane.WORK, timeouts.work(), (connection, unanswered) -> sweep(connection))
                    == SWEPT_AT_ONCE;
            sweepIsSlow.set(false);
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY && sweepIsSlow.compareAndSet(false, true)) {
                log.warn(
                        "The table {} could not be swept within {} ms, and grows until that succeeds: {}",
                        table,
                        timeouts.statement().toMillis(),
                        e.getMessage());
            }
            throw failure("The lease table could not be swept", e);
        }
    }

    private int sweep(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql(connection).sweep)) {
            statement.setString(1, identity.namespace());
            statement.setDouble(2, seconds(retention));
            statement.setInt(3, SWEPT_AT_ONCE);
            return statement.executeUpdate();
        }
    }

    @Override
    public @Nullable Duration untilTidyUp() {
        return moreToSweep ? NEXT_SWEEP : null;
    }

    @Override
    public void close() {
        connections.close();
    }

    // ---- what they share

    private <T> T run(String what, Lane lane, Duration budget, SqlWork<T> work) {
        try {
            return connections.run(lane, budget, work);
        } catch (SQLException e) {
            throw failure(what, e);
        }
    }

    /** A table that is missing now may come later: that it is missing is never remembered. */
    private LeaseSql sql(Connection connection) throws SQLException {
        LeaseSql sql = resolved;
        if (sql == null) {
            LeaseTable found = LeaseSchema.resolve(connection, table);
            if (found == null) {
                throw new SQLException("The table " + table + " does not exist", UNDEFINED_TABLE);
            }
            sql = new LeaseSql(found);
            resolved = sql;
        }
        return sql;
    }

    private LockStorageException failure(String what, SQLException e) {
        if (LOCK_NOT_AVAILABLE.equals(e.getSQLState())) {
            return new LockRefusedException(what + ": another transaction keeps its row locked");
        }
        String hint = switch (SqlStates.kindOf(e)) {
            case MISSING_TABLE ->
                ". Create the table, with dev/pglock/lease/schema.sql for instance, or set"
                        + " pglock.lease.initialize-schema=always";
            case MISSING_PRIVILEGE -> ". The role needs SELECT, INSERT, UPDATE and DELETE on " + table;
            case TOO_MANY_CONNECTIONS -> ". The server takes no more sessions";
            case READ_ONLY -> ". The server, or this database, is read-only";
            default -> "";
        };
        return new LockStorageException(what + ": " + e.getMessage() + hint, e);
    }

    static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }
}
