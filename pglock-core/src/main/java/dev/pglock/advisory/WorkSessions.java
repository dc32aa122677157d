package dev.pglock.advisory;

import dev.pglock.ConnectionWork;
import dev.pglock.Denial;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Locks that work is done on the session of: each has one to itself, which ends with it. */
final class WorkSessions {

    private static final Logger log = LoggerFactory.getLogger(WorkSessions.class);

    private final LockSessions sessions;
    private final Claims claims;
    private final KeyHolders holders;
    private final StoreIdentity identity;
    private final KeyDerivation keys;
    private final AdvisorySettings settings;

    /** By key. */
    private final Map<Long, LockSession> working = new ConcurrentHashMap<>();

    private final IntSupplier elsewhere;
    private final ReentrantLock reserving = new ReentrantLock();
    private final AtomicInteger opening = new AtomicInteger();

    /**
     * Creates those of one replica.
     *
     * @param elsewhere how many keys it has on its lock session
     */
    WorkSessions(
            LockSessions sessions,
            Claims claims,
            KeyHolders holders,
            StoreIdentity identity,
            KeyDerivation keys,
            AdvisorySettings settings,
            IntSupplier elsewhere) {
        this.elsewhere = elsewhere;
        this.sessions = sessions;
        this.claims = claims;
        this.holders = holders;
        this.identity = identity;
        this.keys = keys;
        this.settings = settings;
    }

    boolean isEmpty() {
        return working.isEmpty();
    }

    /** How many there are, those that are being opened included. */
    int size() {
        return working.size() + opening.get();
    }

    /** What they hold, by key, as of now. */
    Map<Long, Held> holdings() {
        Map<Long, Held> all = new HashMap<>();
        working.values().forEach(session -> all.putAll(session.holdings()));
        return all;
    }

    boolean has(Renewal renewal) {
        return working.containsKey(keys.key(identity.namespace(), renewal.name()));
    }

    /** Hands out the session of a lock that is being released; the caller closes it. */
    @Nullable
    LockSession remove(long key) {
        return working.remove(key);
    }

    /** On a session of its own, so that a long statement of the work holds up no heartbeat of the others. */
    ClaimAnswer claimForWork(Claim claim) {
        Denial busy = holders.denial(claim.name(), claim.key());
        if (busy != null) {
            // Whoever waits does not open a session at each attempt.
            return new ClaimAnswer.Denied(busy);
        }
        reserve(claim);
        LockSession session = null;
        boolean granted = false;
        try {
            LockSession own = sessions.open();
            session = own;
            // Its room is reserved.
            ClaimAnswer answer = claims.on(own, claim, settings.timeouts().work(), () -> 0);
            granted = answer instanceof ClaimAnswer.Granted;
            return answer;
        } catch (SQLException e) {
            return Claims.busy(claim, e);
        } finally {
            settle(claim, granted ? session : null);
            if (session != null && !granted) {
                session.close();
            }
        }
    }

    /** Before a connection is opened for it. */
    private void reserve(Claim claim) {
        reserving.lock();
        try {
            claims.refuseBeyondLimit(claim, elsewhere.getAsInt() + size(), 0, 1);
            int ignored = opening.incrementAndGet();
        } finally {
            reserving.unlock();
        }
    }

    private void settle(Claim claim, @Nullable LockSession granted) {
        reserving.lock();
        try {
            int ignored = opening.decrementAndGet();
            if (granted != null) {
                working.put(claim.key(), granted);
            }
        } finally {
            reserving.unlock();
        }
    }

    <T extends @Nullable Object> T onConnection(Tenancy held, ConnectionWork<T> work) throws SQLException {
        LockSession session = working.get(held.key());
        if (session == null) {
            throw new IllegalStateException("Lock '" + held.name() + "' was not claimed for work");
        }
        return session.work(work);
    }

    void abandon(Tenancy tenancy) {
        if (!working.containsKey(tenancy.key())) {
            return;
        }
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

    /** Seen from outside: the work has the session, and may have a long statement on it. */
    List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget) {
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
                            ? AdvisoryStore.ended(renewal)
                            : new RenewalAnswer(
                                    renewal.name(),
                                    renewal.fence(),
                                    RenewalAnswer.Result.RENEWED,
                                    now.plus(settings.lease())));
        }
        return answers;
    }
}
