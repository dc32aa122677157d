package dev.pglock.advisory;

import dev.pglock.ConnectionWork;
import dev.pglock.LockInfo;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.jdbc.ConnectionSource;
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
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
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

    private final LockSessions sessions;
    private final ConnectionSource reads;
    private final AdvisorySettings settings;
    private final KeyHolders holders;
    private final Claims claims;
    private final Renewals heartbeats;
    private final Releases releases;
    private final WorkSessions work;
    private final TransactionLock transactionLock;
    private final ReentrantLock opening = new ReentrantLock();

    /** Changed and read by whoever opens. */
    private @Nullable Failure lastFailure;

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
        this.settings = settings;
        AdvisorySql sql = new AdvisorySql(settings.table());
        RowMemory rows = new RowMemory(identity, settings.table(), sql);
        this.transactionLock = new TransactionLock(
                reads,
                settings.table(),
                identity.namespace(),
                settings.timeouts().work());
        this.holders = new KeyHolders(reads, identity, keys, settings);
        this.claims = new Claims(identity, keys, settings, sql, rows, holders);
        this.heartbeats = new Renewals(identity, keys, settings, sql, rows);
        this.releases = new Releases(settings, rows);
        this.work =
                new WorkSessions(sessions, claims, holders, rows, identity, keys, settings, this::keysOnTheLockSession);
    }

    @Override
    public LockStrategy strategy() {
        return LockStrategy.ADVISORY;
    }

    // ---- claim

    /** On a session that does not answer any more, and then on another, it takes no longer than a lease altogether. */
    @Override
    public ClaimAnswer claim(Claim claim) {
        Duration whole = settings.timeouts().work();
        long until = System.nanoTime() + whole.toNanos();
        UUID id = UUID.randomUUID();
        for (boolean again = false; ; again = true) {
            LockSession session = null;
            try {
                Duration left = longer(
                        Duration.ofNanos(until - System.nanoTime()),
                        settings.timeouts().statement());
                session = session(left);
                return again
                        ? claims.again(session, claim, id, left, work::size)
                        : claims.on(session, claim, id, shorter(whole, silence()), work::size);
            } catch (SQLException e) {
                // It may have died while nobody looked. A grant that was under way died with it.
                if (session == null || !session.hasEnded() || again) {
                    return Claims.busy(claim, e);
                }
            }
        }
    }

    // ---- with a connection of its own, or the caller's

    @Override
    public ClaimAnswer claimForWork(Claim claim) {
        return work.claimForWork(claim);
    }

    @Override
    public <T extends @Nullable Object> T onConnection(Tenancy held, ConnectionWork<T> itsWork) throws SQLException {
        return work.onConnection(held, itsWork);
    }

    @Override
    public void abandon(Tenancy held) {
        work.abandon(held);
        LockSession session = current;
        if (session != null) {
            session.abandon(held.key(), held.fence());
        }
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
        if (work.isEmpty()) {
            return renewOnTheLockSession(renewals, budget);
        }
        Map<Boolean, List<Renewal>> byWork = renewals.stream().collect(Collectors.partitioningBy(work::has));
        List<RenewalAnswer> answers = new ArrayList<>(renewals.size());
        List<Renewal> others = byWork.getOrDefault(false, List.of());
        if (!others.isEmpty()) {
            answers.addAll(renewOnTheLockSession(others, budget));
        }
        List<Renewal> working = byWork.getOrDefault(true, List.of());
        try {
            answers.addAll(work.renew(working, budget, caller));
        } catch (LockStorageException e) {
            if (others.isEmpty()) {
                throw e;
            }
            // What was heard of the others is true all the same.
            log.debug("Work on sessions of its own is asked for again", e);
            working.forEach(renewal -> answers.add(answer(renewal, RenewalAnswer.Result.SKIPPED)));
        }
        return answers;
    }

    private List<RenewalAnswer> renewOnTheLockSession(List<Renewal> renewals, Duration budget) {
        LockSession session = current;
        if (session == null || session.hasEnded()) {
            return allEnded(renewals);
        }
        try {
            return session.ask(longer(silence(), budget), turn -> heartbeats.on(session, renewals));
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return allEnded(renewals);
            }
            throw new LockStorageException("The lock session did not answer: " + e.getMessage(), e);
        }
    }

    private Duration silence() {
        return settings.lease().dividedBy(2);
    }

    private static Duration longer(Duration one, Duration other) {
        return one.compareTo(other) >= 0 ? one : other;
    }

    private static Duration shorter(Duration one, Duration other) {
        return one.compareTo(other) <= 0 ? one : other;
    }

    private static List<RenewalAnswer> allEnded(List<Renewal> renewals) {
        return renewals.stream().map(AdvisoryStore::ended).toList();
    }

    static RenewalAnswer ended(Renewal renewal) {
        return answer(renewal, RenewalAnswer.Result.SESSION_ENDED);
    }

    private static RenewalAnswer answer(Renewal renewal, RenewalAnswer.Result result) {
        return new RenewalAnswer(renewal.name(), renewal.fence(), result, null);
    }

    // ---- release

    @Override
    public boolean release(Release release) {
        LockSession own = work.remove(release.key());
        if (own == null) {
            return releaseOn(current, release);
        }
        boolean done = false;
        try {
            boolean ours = releaseOn(own, release);
            work.close(own);
            done = true;
            return ours;
        } finally {
            if (!done) {
                // Nobody would come back to it for the key that it still has.
                own.end();
            }
        }
    }

    private boolean releaseOn(@Nullable LockSession session, Release release) {
        if (session == null || session.hasEnded()) {
            return false;
        }
        try {
            return releases.on(session, release);
        } catch (SQLException e) {
            if (session.hasEnded()) {
                return false;
            }
            throw new LockStorageException("Lock '" + release.name() + "' could not be released: " + e.getMessage(), e);
        }
    }

    // ---- looking, and operators

    @Override
    public boolean remembers() {
        return holders.isTableThere();
    }

    @Override
    public Optional<LockInfo> find(String name) {
        return holders.find(name, holdings());
    }

    @Override
    public List<LockInfo> findAll() {
        LockSession session = current;
        return holders.findAll(holdings(), key -> session != null && session.isTick(key));
    }

    /** Only at once: it ends the session of that replica, and every lock on it. */
    @Override
    public boolean forceRelease(String name, long key, boolean now) {
        return holders.forceRelease(name, key, now, holdings());
    }

    @Override
    public boolean pause(String name, @Nullable String reason) {
        return holders.pause(name, reason);
    }

    @Override
    public boolean resign(String name, long key, String reason) {
        return holders.resign(name, key, reason);
    }

    @Override
    public Map<Integer, List<String>> waiting() {
        return holders.waiting();
    }

    @Override
    public int sessions() {
        LockSession session = current;
        return (session == null || session.hasEnded() ? 0 : 1) + work.size();
    }

    private Map<Long, Held> holdings() {
        Map<Long, Held> holdings = new HashMap<>(work.holdings());
        LockSession session = current;
        if (session != null && !session.hasEnded()) {
            holdings.putAll(session.holdings());
        }
        return holdings;
    }

    private int keysOnTheLockSession() {
        LockSession session = current;
        return session == null || session.hasEnded() ? 0 : session.size();
    }

    // ---- housekeeping

    /** Opening the lock session finds out all that a claim would. It is closed again when it has held nothing for long. */
    @Override
    public boolean probe() {
        Duration budget = settings.timeouts().work();
        try {
            return session(budget).ask(budget, connection -> connection.isValid(0));
        } catch (SQLException e) {
            throw new LockStorageException("The lock session could not be opened: " + e.getMessage(), e);
        }
    }

    @Override
    public @Nullable Duration untilTidyUp() {
        long now = System.nanoTime();
        Duration kept = work.leastKept(now);
        LockSession session = current;
        if (session == null || session.hasEnded()) {
            return kept;
        }
        Duration onTheLockSession = session.leastKept(now);
        if (onTheLockSession != null) {
            return kept == null ? onTheLockSession : shorter(kept, onTheLockSession);
        }
        return kept != null
                ? kept
                : session.holdings().isEmpty() ? settings.timeouts().idle() : null;
    }

    /** Gives back what was kept for its minimum hold, and closes the session when it has held nothing for long. */
    @Override
    public void tidyUp() {
        work.tidyUp();
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

    private LockSession session(Duration budget) throws SQLException {
        LockSession session = current;
        if (session != null && !session.hasEnded() && !closed) {
            return session;
        }
        long asked = System.nanoTime();
        awaitOpening(asked + budget.toNanos());
        try {
            if (closed) {
                throw new SQLException("The lock session of this registry has been closed");
            }
            session = current;
            if (session == null || session.hasEnded()) {
                session = opened(asked, budget);
                current = session;
            }
            return session;
        } finally {
            opening.unlock();
        }
    }

    /** Whoever has waited for somebody who could not open one does not try by himself, one after the other. */
    private LockSession opened(long asked, Duration budget) throws SQLException {
        Failure before = lastFailure;
        if (before != null && before.at() - asked >= 0) {
            throw new SQLException(before.why().getMessage(), before.why().getSQLState(), before.why());
        }
        try {
            return sessions.open(budget);
        } catch (SQLException e) {
            lastFailure = new Failure(e, System.nanoTime());
            throw e;
        }
    }

    /**
     * A session that could not be opened.
     *
     * @param at {@link System#nanoTime()}
     */
    private record Failure(SQLException why, long at) {}

    /** An interrupt neither ends it nor gets lost. */
    private void awaitOpening(long until) throws SQLException {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    if (opening.tryLock(Math.max(0, until - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                        return;
                    }
                    throw new SQLException("The lock session could not be opened in time", "08001");
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
}
