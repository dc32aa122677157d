package dev.pglock.advisory;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.advisory.LockSession.Held;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlStates;
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
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps locks as session advisory locks, all of them on one session outside every pool. Claim, release and heartbeat are
 * one round trip each, and nothing is written for a lock; what must outlive it (a minimum hold, a completed version, a
 * payload) is written to the lease table where that exists. Thread-safe.
 *
 * <p>Only {@code pg_try_advisory_lock} is used, from one place: a session that waited in the server would hold a snapshot.
 */
public final class AdvisoryStore implements LockStore {

    private static final Logger log = LoggerFactory.getLogger(AdvisoryStore.class);
    private static final String OUT_OF_SHARED_MEMORY = "53200";
    private static final String NO_TIMEOUT = "0";

    /** After how long without a lock and a claim the session is closed. */
    private static final Duration IDLE = Duration.ofSeconds(30);

    private final LockSessions sessions;
    private final ConnectionSource reads;
    private final StoreIdentity identity;
    private final KeyDerivation keys;
    private final AdvisorySettings settings;
    private final AdvisorySql sql;
    private final String watched;

    private final ReentrantLock guard = new ReentrantLock();
    private @Nullable LockSession current;
    private boolean closed;

    /** Whether the table was there when we looked last; every claim looks again. */
    private volatile boolean tableThere = true;

    /**
     * Creates the store of one replica. Opens nothing.
     *
     * @param sessions opens the lock session
     * @param reads for looking; closed with the store
     * @param identity who claims
     * @param keys how names become keys
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
        this.watched = Long.toString(settings.lease().toMillis());
    }

    @Override
    public LockStrategy strategy() {
        return LockStrategy.ADVISORY;
    }

    // ---- claim

    @Override
    public ClaimAnswer claim(Claim claim) {
        boolean again = false;
        while (true) {
            LockSession session = null;
            try {
                session = session();
                return session.ask(settings.timeouts().work(), (connection, held) -> claimOn(connection, held, claim));
            } catch (SQLException e) {
                if (session != null && session.hasEnded() && !again) {
                    // It may have died while it was idle. A grant that was under way died with it.
                    again = true;
                    continue;
                }
                if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
                    return new ClaimAnswer.Denied(Denial.of(claim.name(), DenialReason.KEY_BUSY));
                }
                throw claimFailure(claim, e);
            }
        }
    }

    private LockStorageException claimFailure(Claim claim, SQLException e) {
        if (OUT_OF_SHARED_MEMORY.equals(e.getSQLState())) {
            return new LockStorageException(
                    "Lock '" + claim.name() + "' could not be claimed: the server's lock table is full, for everybody. "
                            + "Raise max_locks_per_transaction there, lower pglock.advisory.max-locks, or use the lease",
                    e);
        }
        return new LockStorageException("Lock '" + claim.name() + "' could not be claimed", e);
    }

    private ClaimAnswer claimOn(Connection connection, Map<Long, Held> held, Claim claim) throws SQLException {
        freeWhatIsOver(connection, held);
        Held left = held.get(claim.key());
        if (left != null && left.lingersUntil() != null) {
            Duration kept = Duration.ofNanos(Math.max(0, left.lingersUntil() - System.nanoTime()));
            return denied(new Denial(claim.name(), DenialReason.HOLD, null, left.fence(), kept));
        }
        if (left != null) {
            // A release of ours that failed: the engine knows that this process does not hold the name any more.
            unlock(connection, held, claim.key());
        }
        if (held.size() >= settings.maxLocks()) {
            throw new LockStorageException(
                    "Lock '" + claim.name() + "' was not claimed: this replica holds " + held.size()
                            + " advisory locks already. Raise pglock.advisory.max-locks, with an eye on the server's "
                            + "max_locks_per_transaction, or use the lease",
                    null);
        }
        if (claim.version() != null && !tableThere && !tableExists(connection)) {
            throw new LockStorageException(
                    "Lock '" + claim.name()
                            + "' has a version, which is remembered in the lease table, but there is no "
                            + settings.table(),
                    null);
        }
        try {
            return tableThere ? claimWithRow(connection, held, claim) : claimWithoutRow(connection, held, claim);
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE && tableThere) {
                tableThere = false;
                return claimOn(connection, held, claim);
            }
            freeAfterError(connection, claim.key(), e);
            throw e;
        }
    }

    private ClaimAnswer claimWithRow(Connection connection, Map<Long, Held> held, Claim claim) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.claimWithRow)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, claim.name());
            statement.setLong(3, claim.key());
            statement.setString(4, claim.version());
            statement.setString(5, identity.namespace());
            statement.setString(6, claim.name());
            statement.setString(7, claim.version());
            statement.setString(8, watched);
            return read(connection, statement, held, claim);
        }
    }

    private ClaimAnswer claimWithoutRow(Connection connection, Map<Long, Held> held, Claim claim) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.claimWithoutRow)) {
            statement.setLong(1, claim.key());
            statement.setString(2, settings.table());
            statement.setString(3, watched);
            return read(connection, statement, held, claim);
        }
    }

    private ClaimAnswer read(Connection connection, PreparedStatement statement, Map<Long, Held> held, Claim claim)
            throws SQLException {
        boolean got;
        Denial first;
        boolean hasResults = statement.execute();
        try (ResultSet row = results(statement, hasResults)) {
            got = Boolean.parseBoolean(row.getString("got"));
            first = denial(claim, row);
        }
        try (ResultSet row = results(statement, statement.getMoreResults())) {
            String reason = row.getString("reason");
            boolean appeared = row.getBoolean("table_there") && !tableThere;
            if (!got) {
                return denied(first);
            }
            if (reason != null || appeared) {
                // The row has changed, or come into being, between the look and the grant.
                tableThere |= appeared;
                unlock(connection, held, claim.key());
                return denied(
                        Denial.of(claim.name(), reason == null ? DenialReason.UNKNOWN : DenialReason.valueOf(reason)));
            }
            Instant now = instant(row, "now");
            Held tenure = new Held(claim.name(), row.getLong("fence"), now, null);
            if (claim.data() != null || row.getBoolean("has_data")) {
                remember(connection, tenure, true, claim.data());
            }
            held.put(claim.key(), tenure);
            return new ClaimAnswer.Granted(tenure.fence(), now, now.plus(settings.lease()));
        }
    }

    private static ResultSet results(PreparedStatement statement, boolean hasResults) throws SQLException {
        ResultSet row = hasResults ? statement.getResultSet() : null;
        if (row == null || !row.next()) {
            throw new SQLException("A claim must have an answer");
        }
        return row;
    }

    private static Denial denial(Claim claim, ResultSet row) throws SQLException {
        String reason = row.getString("reason");
        Double left = row.getObject("seconds_left", Double.class);
        return new Denial(
                claim.name(),
                reason == null ? DenialReason.KEY_BUSY : DenialReason.valueOf(reason),
                "HELD".equals(reason) ? row.getString("holder_label") : null,
                row.getObject("fence", Long.class),
                left == null ? null : Duration.ofNanos((long) (Math.max(0, left) * 1e9)));
    }

    private static ClaimAnswer denied(Denial denial) {
        return new ClaimAnswer.Denied(denial);
    }

    /** An error after the grant must not leave the key behind: nobody here would know of it. */
    private static void freeAfterError(Connection connection, long key, SQLException failure) {
        try (PreparedStatement statement = connection.prepareStatement("SELECT pg_advisory_unlock(?::bigint)")) {
            statement.setLong(1, key);
            boolean ignored = statement.execute();
        } catch (SQLException e) {
            failure.addSuppressed(e);
        }
    }

    // ---- renew

    @Override
    public List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        LockSession session = currentOrNull();
        if (session == null || session.hasEnded()) {
            return allEnded(renewals);
        }
        try {
            return session.ask(budget, (connection, held) -> renewOn(connection, held, renewals));
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return allEnded(renewals);
            }
            throw new LockStorageException("The lock session did not answer", e);
        }
    }

    private static List<RenewalAnswer> allEnded(List<Renewal> renewals) {
        return renewals.stream()
                .map(r -> new RenewalAnswer(r.name(), r.fence(), RenewalAnswer.Result.SESSION_ENDED, null))
                .toList();
    }

    private List<RenewalAnswer> renewOn(Connection connection, Map<Long, Held> held, List<Renewal> renewals)
            throws SQLException {
        freeWhatIsOver(connection, held);
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
            answers.add(renewOn(connection, held, stillHeld, renewal, until));
        }
        return answers;
    }

    private RenewalAnswer renewOn(
            Connection connection, Map<Long, Held> held, Set<Long> stillHeld, Renewal renewal, Instant until)
            throws SQLException {
        long key = keys.key(identity.namespace(), renewal.name());
        Held tenure = held.get(key);
        if (tenure == null || tenure.fence() != renewal.fence()) {
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        if (!stillHeld.contains(key)) {
            held.remove(key);
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        Renewal.Payload payload = renewal.payload();
        if (payload != null) {
            remember(connection, tenure, true, payload.data());
        }
        return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.RENEWED, until);
    }

    // ---- release

    @Override
    public boolean release(Release release) {
        LockSession session = currentOrNull();
        if (session == null || session.hasEnded()) {
            return false;
        }
        try {
            return session.ask(settings.timeouts().work(), (connection, held) -> releaseOn(connection, held, release));
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return false;
            }
            throw new LockStorageException("Lock '" + release.name() + "' could not be released", e);
        }
    }

    private boolean releaseOn(Connection connection, Map<Long, Held> held, Release release) throws SQLException {
        Held tenure = held.get(release.key());
        if (tenure == null || tenure.fence() != release.fence()) {
            return false;
        }
        boolean memorable = release.minHold() != null || release.completed() != null;
        if (memorable && (tableThere || tableExists(connection))) {
            remember(connection, tenure, false, null);
            rememberEnd(connection, release);
        } else if (release.minHold() != null) {
            // Without a table the key itself is kept for the rest of the time; nobody waits for it.
            long until = System.nanoTime()
                    + rest(connection, tenure, release.minHold()).toNanos();
            held.put(release.key(), tenure.lingering(until));
            return true;
        }
        return unlock(connection, held, release.key());
    }

    private static Duration rest(Connection connection, Held tenure, Duration minHold) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT clock_timestamp() AS now");
                ResultSet row = statement.executeQuery()) {
            row.next();
            Duration rest =
                    Duration.between(instant(row, "now"), tenure.acquiredAt().plus(minHold));
            return rest.isNegative() ? Duration.ZERO : rest;
        }
    }

    private boolean unlock(Connection connection, Map<Long, Held> held, long key) throws SQLException {
        boolean last = held.size() <= (held.containsKey(key) ? 1 : 0);
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.UNLOCK)) {
            statement.setLong(1, key);
            statement.setString(2, last ? NO_TIMEOUT : watched);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                held.remove(key);
                return row.getBoolean("unlocked");
            }
        }
    }

    private void freeWhatIsOver(Connection connection, Map<Long, Held> held) throws SQLException {
        long now = System.nanoTime();
        List<Long> over = held.entrySet().stream()
                .filter(entry -> entry.getValue().isOver(now))
                .map(Map.Entry::getKey)
                .toList();
        for (Long key : over) {
            boolean ignored = unlock(connection, held, key);
        }
    }

    // ---- memory in the row

    private boolean tableExists(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT to_regclass(?) IS NOT NULL AS there")) {
            statement.setString(1, settings.table());
            try (ResultSet row = statement.executeQuery()) {
                tableThere = row.next() && row.getBoolean("there");
                return tableThere;
            }
        }
    }

    private void remember(Connection connection, Held tenure, boolean replaces, @Nullable String data)
            throws SQLException {
        if (!tableThere && !tableExists(connection)) {
            throw new LockStorageException(
                    "The payload of lock '" + tenure.name() + "' is kept in the lease table, but there is no "
                            + settings.table(),
                    null);
        }
        try (PreparedStatement statement = connection.prepareStatement(sql.remember)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, tenure.name());
            statement.setLong(3, tenure.fence());
            statement.setObject(4, tenure.acquiredAt().atOffset(ZoneOffset.UTC));
            statement.setBoolean(5, replaces);
            statement.setString(6, data);
            statement.setBoolean(7, replaces);
            int ignored = statement.executeUpdate();
        }
    }

    private void rememberEnd(Connection connection, Release release) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.rememberEnd)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, release.name());
            if (release.minHold() == null) {
                statement.setNull(3, Types.DOUBLE);
            } else {
                statement.setDouble(3, release.minHold().toNanos() / 1e9);
            }
            statement.setString(4, release.completed());
            statement.setString(5, identity.label());
            statement.setString(6, release.outcome().name());
            statement.setString(7, release.error());
            int ignored = statement.executeUpdate();
        }
    }

    // ---- looking

    @Override
    public Optional<LockInfo> find(String name) {
        long key = keys.key(identity.namespace(), name);
        return look(key, Map.of(key, name)).stream().findFirst();
    }

    @Override
    public List<LockInfo> findAll() {
        return look(null, null);
    }

    private List<LockInfo> look(@Nullable Long key, @Nullable Map<Long, String> names) {
        try {
            return reads.run(ConnectionSource.Lane.WORK, settings.timeouts().work(), (connection, unanswered) -> {
                Map<Long, String> known = names == null ? knownNames(connection) : names;
                List<LockInfo> found = new ArrayList<>();
                try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.FIND)) {
                    if (key == null) {
                        statement.setNull(1, Types.BIGINT);
                        statement.setNull(3, Types.BIGINT);
                    } else {
                        statement.setLong(1, key);
                        statement.setLong(3, key);
                    }
                    statement.setString(2, prefix());
                    try (ResultSet row = statement.executeQuery()) {
                        while (row.next()) {
                            found.add(info(row, known));
                        }
                    }
                }
                found.sort(Comparator.comparing(LockInfo::name));
                return found;
            });
        } catch (SQLException e) {
            throw new LockStorageException("The advisory locks could not be looked up", e);
        }
    }

    private String prefix() {
        return "pglock:" + identity.namespace() + ":";
    }

    private LockInfo info(ResultSet row, Map<Long, String> known) throws SQLException {
        long key = row.getLong("key");
        String application = row.getString("application_name");
        boolean ours = application != null && application.startsWith(prefix());
        Held own = ownTenure(key);
        return new LockInfo(
                known.getOrDefault(key, "key " + key),
                LockStrategy.ADVISORY,
                LockState.HELD,
                ours
                        ? application.substring(prefix().length())
                        : "foreign session " + row.getInt("pid") + " (" + application + ")",
                own == null ? null : own.fence(),
                own == null ? null : own.acquiredAt(),
                null,
                null,
                null);
    }

    /** The names of the namespace that have a row, and those that we hold. */
    private Map<Long, String> knownNames(Connection connection) throws SQLException {
        Map<Long, String> names = new HashMap<>();
        if (tableThere || tableExists(connection)) {
            try (PreparedStatement statement = connection.prepareStatement(sql.names)) {
                statement.setString(1, identity.namespace());
                try (ResultSet row = statement.executeQuery()) {
                    while (row.next()) {
                        String name = row.getString("name");
                        names.put(keys.key(identity.namespace(), name), name);
                    }
                }
            }
        }
        LockSession session = currentOrNull();
        if (session != null) {
            session.holdings().forEach((key, tenure) -> names.put(key, tenure.name()));
        }
        return names;
    }

    private @Nullable Held ownTenure(long key) {
        LockSession session = currentOrNull();
        return session == null ? null : session.holdings().get(key);
    }

    // ---- operators

    /** Only at once: it ends the session of that replica, and every lock on it. */
    @Override
    public boolean forceRelease(String name, boolean now) {
        long key = keys.key(identity.namespace(), name);
        try {
            return reads.run(ConnectionSource.Lane.WORK, settings.timeouts().work(), (connection, unanswered) -> {
                Integer pid = sessionThatHolds(connection, key);
                if (pid == null) {
                    return false;
                }
                if (!now) {
                    throw new LockStorageException(
                            "Advisory lock '" + name + "' can only be released by force at once, because that ends the "
                                    + "lock session of its replica with all locks on it: ask for it with now",
                            null);
                }
                log.warn(
                        "The lock session {} is ended by force for lock '{}', and these locks with it: {}",
                        pid,
                        name,
                        locksOn(connection, pid));
                return terminate(connection, pid);
            });
        } catch (SQLException e) {
            throw new LockStorageException("Lock '" + name + "' could not be released by force", e);
        }
    }

    private static @Nullable Integer sessionThatHolds(Connection connection, long key) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.HOLDER)) {
            statement.setLong(1, key);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? row.getObject("pid", Integer.class) : null;
            }
        }
    }

    private List<String> locksOn(Connection connection, int pid) throws SQLException {
        Map<Long, String> known = knownNames(connection);
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.HELD_BY)) {
            statement.setInt(1, pid);
            List<String> names = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    long key = row.getLong("key");
                    names.add(known.getOrDefault(key, "key " + key));
                }
            }
            return names;
        }
    }

    private static boolean terminate(Connection connection, int pid) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.TERMINATE)) {
            statement.setInt(1, pid);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getBoolean(1);
            }
        }
    }

    // ---- housekeeping

    @Override
    public @Nullable Duration untilTidyUp() {
        LockSession session = currentOrNull();
        if (session == null || session.hasEnded()) {
            return null;
        }
        long now = System.nanoTime();
        return session.holdings().values().stream()
                .map(Held::lingersUntil)
                .flatMap(java.util.stream.Stream::ofNullable)
                .map(until -> Duration.ofNanos(Math.max(0, until - now)))
                .min(Comparator.naturalOrder())
                .orElse(session.holdings().isEmpty() ? IDLE : null);
    }

    /** Gives back what was kept for its minimum hold, and closes the session when it has held nothing for long. */
    @Override
    public void tidyUp() {
        LockSession session = currentOrNull();
        if (session == null || session.hasEnded()) {
            return;
        }
        try {
            session.ask(settings.timeouts().work(), (connection, held) -> {
                freeWhatIsOver(connection, held);
                return true;
            });
            session.closeIfIdle(IDLE);
        } catch (SQLException e) {
            throw new LockStorageException("The lock session could not be tidied up", e);
        }
    }

    // ---- the session

    private @Nullable LockSession currentOrNull() {
        guard.lock();
        try {
            return current;
        } finally {
            guard.unlock();
        }
    }

    private LockSession session() throws SQLException {
        guard.lock();
        try {
            if (closed) {
                throw new SQLException("The lock session of this registry has been closed");
            }
            if (current == null || current.hasEnded()) {
                current = new LockSession(sessions.open());
            }
            return current;
        } finally {
            guard.unlock();
        }
    }

    @Override
    public void close() {
        guard.lock();
        try {
            closed = true;
            if (current != null) {
                current.close();
            }
        } finally {
            guard.unlock();
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
