package dev.pglock.advisory;

import dev.pglock.ConnectionWork;
import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.lease.TransactionLock;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps locks as session advisory locks, all of them on one session outside every pool. Claim, release and heartbeat are
 * one round trip each, and nothing is written for a lock but what must outlive it. Thread-safe.
 *
 * <p>Only {@code pg_try_advisory_lock} is used, from one place: a session that waited in the server would hold a snapshot,
 * and CREATE INDEX CONCURRENTLY would wait for it.
 */
public final class AdvisoryStore implements LockStore {

    private static final Logger log = LoggerFactory.getLogger(AdvisoryStore.class);
    private static final String OUT_OF_SHARED_MEMORY = "53200";

    private final LockSessions sessions;
    private final ConnectionSource reads;
    private final StoreIdentity identity;
    private final KeyDerivation keys;
    private final AdvisorySettings settings;
    private final AdvisorySql sql;
    private final RowMemory rows;
    private final KeyHolders holders;

    private final TransactionLock transactionLock;

    /** By key: the sessions of locks that work is done on. */
    private final Map<Long, LockSession> working = new ConcurrentHashMap<>();

    private final ReentrantLock opening = new ReentrantLock();
    private volatile @Nullable LockSession current;
    private volatile boolean closed;

    /**
     * Creates the store of one replica. Opens nothing.
     *
     * @param sessions opens the lock session
     * @param reads for looking; closed with the store
     * @param identity who claims
     * @param keys how names become keys; the registry must have the same
     * @param settings the rest
     */
    public AdvisoryStore(
            LockSessions sessions,
            ConnectionSource reads,
            StoreIdentity identity,
            KeyDerivation keys,
            AdvisorySettings settings) {
        this.sessions = sessions;
        this.reads = reads;
        this.identity = identity;
        this.keys = keys;
        this.settings = settings;
        this.sql = new AdvisorySql(settings.table());
        this.rows = new RowMemory(identity, settings.table(), sql);
        this.transactionLock = new TransactionLock(
                reads,
                settings.table(),
                identity.namespace(),
                settings.timeouts().work());
        this.holders = new KeyHolders(reads, identity, keys, settings);
    }

    @Override
    public LockStrategy strategy() {
        return LockStrategy.ADVISORY;
    }

    // ---- claim

    @Override
    public ClaimAnswer claim(Claim claim) {
        for (boolean again = false; ; again = true) {
            LockSession session = null;
            try {
                LockSession asked = session();
                session = asked;
                asked.touch();
                return asked.ask(settings.timeouts().work(), connection -> claim(connection, asked, claim));
            } catch (SQLException e) {
                // It may have died while nobody looked. A grant that was under way died with it.
                if (session == null || !session.hasEnded() || again) {
                    return busy(claim, e);
                }
            }
        }
    }

    /** Our own timeouts are the only failure that is a denial. */
    private static ClaimAnswer busy(Claim claim, SQLException e) {
        if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
            return denied(Denial.of(claim.name(), DenialReason.KEY_BUSY));
        }
        String hint = OUT_OF_SHARED_MEMORY.equals(e.getSQLState())
                ? ": the server's lock table is full, for everybody. Raise max_locks_per_transaction there, lower"
                        + " pglock.advisory.max-locks, or use pglock.strategy=lease, which takes no room in it"
                : ": " + e.getMessage();
        throw new LockStorageException("Lock '" + claim.name() + "' could not be claimed" + hint, e);
    }

    private ClaimAnswer claim(Connection connection, LockSession session, Claim claim) throws SQLException {
        session.unlockWhatIsOver();
        Held left = session.held(claim.key());
        if (left != null && left.isKept()) {
            return denied(
                    new Denial(claim.name(), DenialReason.HOLD, null, left.fence(), left.left(System.nanoTime())));
        }
        if (left != null) {
            // A release of ours that failed: the engine knows that this process does not hold the name any more.
            boolean ignored = session.unlock(claim.key());
        }
        if (session.size() >= settings.maxLocks()) {
            throw new LockRefusedException(
                    "Lock '" + claim.name() + "' was not claimed: this replica holds " + session.size()
                            + " advisory locks already. Raise pglock.advisory.max-locks, with an eye on the server's "
                            + "max_locks_per_transaction, or use pglock.strategy=lease, which has no such limit");
        }
        if (claim.version() != null) {
            rows.require(connection, claim.name(), "The version");
        }
        if (claim.data() != null) {
            rows.require(connection, claim.name(), "The payload");
        }
        try {
            return rows.isThere()
                    ? claimWithRow(connection, session, claim)
                    : claimWithoutRow(connection, session, claim);
        } catch (SQLException e) {
            freeAfterError(session, claim.key(), e);
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE && rows.isThere()) {
                rows.isThere(false);
                return claim(connection, session, claim);
            }
            throw e;
        }
    }

    /** An error after the grant must not leave the key behind: nobody here would know of it. */
    private static void freeAfterError(LockSession session, long key, SQLException failure) {
        try {
            boolean ignored = session.unlock(key);
        } catch (SQLException e) {
            failure.addSuppressed(e);
        }
    }

    private ClaimAnswer claimWithRow(Connection connection, LockSession session, Claim claim) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.claimWithRow)) {
            statement.setInt(1, session.pid());
            statement.setLong(2, claim.key());
            statement.setString(3, identity.namespace());
            statement.setString(4, claim.name());
            statement.setString(5, claim.version());
            statement.setLong(6, claim.key());
            statement.setString(7, identity.namespace());
            statement.setString(8, claim.name());
            statement.setString(9, claim.version());
            statement.setString(10, session.leaseMillis());
            return answer(connection, session, statement, claim);
        }
    }

    private ClaimAnswer claimWithoutRow(Connection connection, LockSession session, Claim claim) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.CLAIM_WITHOUT_ROW)) {
            statement.setInt(1, session.pid());
            statement.setLong(2, claim.key());
            statement.setLong(3, claim.key());
            statement.setString(4, settings.table().sql());
            statement.setString(5, session.leaseMillis());
            return answer(connection, session, statement, claim);
        }
    }

    private ClaimAnswer answer(Connection connection, LockSession session, PreparedStatement statement, Claim claim)
            throws SQLException {
        boolean got;
        Denial guarded;
        try (ResultSet row = next(statement, statement.execute())) {
            if (!row.getBoolean("same_session")) {
                session.end();
                throw LockSessions.transactionPooler();
            }
            got = Boolean.parseBoolean(row.getString("got"));
            guarded = guarded(claim, row);
        }
        try (ResultSet row = next(statement, statement.getMoreResults())) {
            if (!got) {
                return denied(guarded == null ? holders.denial(claim.name(), row) : guarded);
            }
            boolean appeared = row.getBoolean("table_there") && !rows.isThere();
            String reason = row.getString("reason");
            if (reason != null || appeared) {
                // The row has changed, or come into being, between the look and the grant.
                rows.isThere(rows.isThere() || appeared);
                boolean ignored = session.unlock(claim.key());
                return denied(
                        Denial.of(claim.name(), reason == null ? DenialReason.UNKNOWN : DenialReason.valueOf(reason)));
            }
            return granted(connection, session, row, claim);
        }
    }

    private ClaimAnswer granted(Connection connection, LockSession session, ResultSet row, Claim claim)
            throws SQLException {
        Instant now = instant(row, "now");
        Held tenure = Held.granted(claim.name(), row.getLong("fence"), now);
        Long rowFence = row.getObject("row_fence", Long.class);
        // A fence that is no transaction id follows that of a row restored from elsewhere: the next one must follow
        // ours.
        boolean ahead = rowFence != null && tenure.fence() == rowFence + 1;
        if (claim.data() != null || row.getBoolean("has_data") || ahead) {
            rows.payload(connection, tenure, claim.data());
        }
        session.put(claim.key(), tenure);
        return new ClaimAnswer.Granted(tenure.fence(), now, now.plus(settings.lease()));
    }

    private static ResultSet next(PreparedStatement statement, boolean hasResults) throws SQLException {
        ResultSet row = hasResults ? statement.getResultSet() : null;
        if (row == null || !row.next()) {
            throw new SQLException("A claim must have an answer");
        }
        return row;
    }

    /** Denied by the row; null: not by the row. */
    private static @Nullable Denial guarded(Claim claim, ResultSet row) throws SQLException {
        String reason = row.getString("reason");
        if (reason == null) {
            return null;
        }
        Double left = row.getObject("seconds_left", Double.class);
        boolean held = reason.equals(DenialReason.HELD.name());
        return new Denial(
                claim.name(),
                DenialReason.valueOf(reason),
                held ? row.getString("holder_label") : null,
                left == null ? null : row.getObject("fence", Long.class),
                left == null ? null : Duration.ofNanos((long) (Math.max(0, left) * 1e9)));
    }

    private static ClaimAnswer denied(Denial denial) {
        return new ClaimAnswer.Denied(denial);
    }

    // ---- work on the lock's own session

    /** On a session of its own, so that a long statement of the work holds up no heartbeat of the others. */
    @Override
    public ClaimAnswer claimForWork(Claim claim) {
        LockSession session = null;
        boolean granted = false;
        try {
            LockSession own = sessions.open();
            session = own;
            ClaimAnswer answer = own.ask(settings.timeouts().work(), connection -> claim(connection, own, claim));
            granted = answer instanceof ClaimAnswer.Granted;
            if (granted) {
                working.put(claim.key(), own);
            }
            return answer;
        } catch (SQLException e) {
            return busy(claim, e);
        } finally {
            if (session != null && !granted) {
                session.close();
            }
        }
    }

    @Override
    public <T extends @Nullable Object> T onConnection(Tenancy held, ConnectionWork<T> work) throws SQLException {
        LockSession session = working.get(held.key());
        if (session == null) {
            throw new IllegalStateException("Lock '" + held.name() + "' was not claimed for work");
        }
        return session.work(work);
    }

    @Override
    public void abandon(Tenancy tenancy) {
        LockSession left = working.computeIfPresent(tenancy.key(), (key, session) -> {
            Held tenure = session.held(key);
            if (tenure == null || tenure.fence() != tenancy.fence()) {
                return session;
            }
            session.end();
            return null;
        });
        log.debug(
                "Work under lock '{}' was abandoned; {} works on",
                tenancy.name(),
                left == null ? "nobody" : "a later one");
    }

    @Override
    public boolean tryInTransaction(Connection transaction, String name, long key) {
        try {
            return transactionLock.tryAcquire(transaction, name, key);
        } catch (SQLException e) {
            throw new LockStorageException(
                    "Lock '" + name + "' could not be taken in a transaction: " + e.getMessage(), e);
        }
    }

    // ---- renew

    /** The session is asked until half of the lease is over: giving it up sooner would lose what it may still hold. */
    @Override
    public List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        if (renewals.isEmpty()) {
            return List.of();
        }
        if (working.isEmpty()) {
            return renewOnTheLockSession(renewals, budget);
        }
        Map<Boolean, List<Renewal>> byWork = renewals.stream()
                .collect(Collectors.partitioningBy(r -> working.containsKey(keys.key(identity.namespace(), r.name()))));
        List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
        List<Renewal> others = byWork.getOrDefault(false, List.of());
        if (!others.isEmpty()) {
            answers.addAll(renewOnTheLockSession(others, budget));
        }
        answers.addAll(renewSeenFromOutside(byWork.getOrDefault(true, List.of()), budget));
        return answers;
    }

    /** The work has the session, and may have a long statement on it. */
    private List<RenewalAnswer> renewSeenFromOutside(List<Renewal> renewals, Duration budget) {
        List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
        for (Renewal renewal : renewals) {
            long key = keys.key(identity.namespace(), renewal.name());
            LockSession session = working.get(key);
            Held tenure = session == null ? null : session.held(key);
            boolean ours = tenure != null && tenure.fence() == renewal.fence();
            Instant now = session == null || session.hasEnded() || !ours
                    ? null
                    : holders.timeIfHeldBy(session.pid(), key, budget);
            answers.add(
                    now == null
                            ? ended(renewal)
                            : new RenewalAnswer(
                                    renewal.name(),
                                    renewal.fence(),
                                    RenewalAnswer.Result.RENEWED,
                                    now.plus(settings.lease())));
        }
        return answers;
    }

    private List<RenewalAnswer> renewOnTheLockSession(List<Renewal> renewals, Duration budget) {
        LockSession session = current;
        if (session == null || session.hasEnded()) {
            return allEnded(renewals);
        }
        Duration half = settings.lease().dividedBy(2);
        try {
            return session.ask(
                    half.compareTo(budget) > 0 ? half : budget, connection -> renew(connection, session, renewals));
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return allEnded(renewals);
            }
            throw new LockStorageException("The lock session did not answer: " + e.getMessage(), e);
        }
    }

    private static List<RenewalAnswer> allEnded(List<Renewal> renewals) {
        return renewals.stream().map(AdvisoryStore::ended).toList();
    }

    private static RenewalAnswer ended(Renewal renewal) {
        return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.SESSION_ENDED, null);
    }

    private List<RenewalAnswer> renew(Connection connection, LockSession session, List<Renewal> renewals)
            throws SQLException {
        session.unlockWhatIsOver();
        Set<Long> stillHeld;
        Instant until;
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.STILL_HELD);
                ResultSet row = statement.executeQuery()) {
            row.next();
            if (row.getBoolean("standby")) {
                throw new SQLException("The server has become a standby", "25006");
            }
            until = instant(row, "now").plus(settings.lease());
            stillHeld =
                    new HashSet<>(Arrays.asList((Long[]) row.getArray("keys").getArray()));
        }
        List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
        for (Renewal renewal : renewals) {
            answers.add(renew(connection, session, stillHeld, renewal, until));
        }
        return answers;
    }

    private RenewalAnswer renew(
            Connection connection, LockSession session, Set<Long> stillHeld, Renewal renewal, Instant until)
            throws SQLException {
        long key = keys.key(identity.namespace(), renewal.name());
        Held tenure = session.held(key);
        boolean ours = tenure != null && tenure.fence() == renewal.fence() && !tenure.isKept();
        if (!ours || tenure == null) {
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        if (!stillHeld.contains(key)) {
            session.forget(key);
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        Renewal.Payload payload = renewal.payload();
        if (payload != null) {
            rows.payload(connection, tenure, payload.data());
        }
        return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.RENEWED, until);
    }

    // ---- release

    @Override
    public boolean release(Release release) {
        LockSession own = working.remove(release.key());
        LockSession session = own == null ? current : own;
        try {
            return releaseOn(session, release);
        } finally {
            if (own != null) {
                own.close();
            }
        }
    }

    private boolean releaseOn(@Nullable LockSession session, Release release) {
        if (session == null || session.hasEnded()) {
            return false;
        }
        try {
            return session.ask(settings.timeouts().work(), connection -> release(connection, session, release));
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return false;
            }
            throw new LockStorageException("Lock '" + release.name() + "' could not be released: " + e.getMessage(), e);
        }
    }

    private boolean release(Connection connection, LockSession session, Release release) throws SQLException {
        session.touch();
        Held tenure = session.held(release.key());
        if (tenure == null || tenure.fence() != release.fence() || tenure.isKept()) {
            return false;
        }
        // From now on the key is only waiting to be given back, whatever goes wrong here.
        session.put(release.key(), tenure.over());
        boolean memorable = release.minHold() != null || release.completed() != null;
        if (memorable && rows.isThere(connection)) {
            rows.end(connection, tenure, release);
        } else if (release.minHold() != null) {
            Held kept = tenure.keptFor(release.minHold());
            if (!kept.isOver(System.nanoTime())) {
                session.keep(release.key(), kept);
                return true;
            }
        }
        return session.unlock(release.key());
    }

    // ---- looking, and operators

    @Override
    public Optional<LockInfo> find(String name) {
        return holders.find(name, holdings());
    }

    @Override
    public List<LockInfo> findAll() {
        return holders.findAll(holdings());
    }

    /** Only at once: it ends the session of that replica, and every lock on it. */
    @Override
    public boolean forceRelease(String name, boolean now) {
        return holders.forceRelease(name, now, holdings());
    }

    private Map<Long, Held> holdings() {
        LockSession session = current;
        return session == null || session.hasEnded() ? Map.of() : session.holdings();
    }

    // ---- housekeeping

    @Override
    public @Nullable Duration untilTidyUp() {
        LockSession session = current;
        if (session == null || session.hasEnded()) {
            return null;
        }
        long now = System.nanoTime();
        Map<Long, Held> holdings = session.holdings();
        return holdings.values().stream()
                .filter(Held::isKept)
                .map(tenure -> tenure.left(now))
                .min(Comparator.naturalOrder())
                .orElse(holdings.isEmpty() ? settings.timeouts().idle() : null);
    }

    /** Gives back what was kept for its minimum hold, and closes the session when it has held nothing for long. */
    @Override
    public void tidyUp() {
        LockSession session = current;
        if (session == null || session.hasEnded()) {
            return;
        }
        try {
            session.ask(settings.timeouts().work(), connection -> {
                session.unlockWhatIsOver();
                return true;
            });
            session.closeIfIdle(settings.timeouts().idle());
        } catch (SQLException e) {
            throw new LockStorageException("The lock session could not be tidied up: " + e.getMessage(), e);
        }
    }

    // ---- the session

    private LockSession session() throws SQLException {
        LockSession session = current;
        if (session != null && !session.hasEnded() && !closed) {
            return session;
        }
        opening.lock();
        try {
            if (closed) {
                throw new SQLException("The lock session of this registry has been closed");
            }
            session = current;
            if (session == null || session.hasEnded()) {
                session = sessions.open();
                current = session;
            }
            return session;
        } finally {
            opening.unlock();
        }
    }

    @Override
    public void close() {
        opening.lock();
        try {
            closed = true;
            LockSession session = current;
            if (session != null) {
                session.close();
            }
        } finally {
            opening.unlock();
        }
        reads.close();
    }

    private static Instant instant(ResultSet row, String column) throws SQLException {
        OffsetDateTime value = row.getObject(column, OffsetDateTime.class);
        if (value == null) {
            throw new SQLException("Column " + column + " must have a value");
        }
        return value.toInstant();
    }
}
