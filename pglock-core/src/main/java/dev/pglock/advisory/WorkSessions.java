package dev.pglock.advisory;

import dev.pglock.ConnectionWork;
import dev.pglock.Denial;
import dev.pglock.LockStorageException;
import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
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
    private final RowMemory rows;
    private final StoreIdentity identity;
    private final KeyDerivation keys;
    private final AdvisorySettings settings;

    /** By key. */
    private final Map<Long, LockSession> working = new ConcurrentHashMap<>();

    /** Whose work is over, and whose key is kept for its minimum hold. */
    private final Set<LockSession> kept = ConcurrentHashMap.newKeySet();

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
            RowMemory rows,
            StoreIdentity identity,
            KeyDerivation keys,
            AdvisorySettings settings,
            IntSupplier elsewhere) {
        this.elsewhere = elsewhere;
        this.sessions = sessions;
        this.claims = claims;
        this.holders = holders;
        this.rows = rows;
        this.identity = identity;
        this.keys = keys;
        this.settings = settings;
    }

    boolean isEmpty() {
        return working.isEmpty();
    }

    /** How many there are, those that are being opened included. */
    int size() {
        return working.size() + kept.size() + opening.get();
    }

    /** What they hold, by key, as of now. */
    Map<Long, Held> holdings() {
        Map<Long, Held> all = new HashMap<>();
        kept.forEach(session -> all.putAll(session.holdings()));
        working.values().forEach(session -> all.putAll(session.holdings()));
        return all;
    }

    boolean has(Renewal renewal) {
        return working.containsKey(keys.key(identity.namespace(), renewal.name()));
    }

    /** Hands out the session of a lock that is being released; the caller {@linkplain #close closes} or ends it. */
    @Nullable
    LockSession remove(long key) {
        return working.remove(key);
    }

    /** Closes a session whose lock has been released, as soon as its key need not be kept any more. */
    void close(LockSession session) {
        if (session.leastKept(System.nanoTime()) == null) {
            session.close();
        } else {
            boolean ignored = kept.add(session);
        }
    }

    /** How long it takes until a key need not be kept any more; null: none is. */
    @Nullable
    Duration leastKept(long now) {
        return kept.stream()
                .map(session -> session.leastKept(now))
                .filter(Objects::nonNull)
                .min(Comparator.naturalOrder())
                .orElse(null);
    }

    /** Gives back what has been kept for long enough, and closes the session. */
    void tidyUp() {
        long now = System.nanoTime();
        for (LockSession session : List.copyOf(kept)) {
            Duration left = session.leastKept(now);
            if (session.hasEnded() || left == null || left.isZero()) {
                boolean ignored = kept.remove(session);
                giveBack(session);
            }
        }
    }

    private void giveBack(LockSession session) {
        try {
            session.close();
            boolean ignored = session.ask(settings.timeouts().work(), connection -> {
                session.unlockWhatIsOver();
                return true;
            });
        } catch (SQLException e) {
            log.debug("A session is ended, and what it kept is free by that", e);
            session.end();
        }
    }

    /**
     * On a session of its own, so that a long statement of the work holds up no heartbeat of the others. Looking, opening
     * and claiming share one budget: an answer that comes later than a lease is of no use.
     */
    ClaimAnswer claimForWork(Claim claim) {
        long until = System.nanoTime() + settings.timeouts().work().toNanos();
        Denial busy = holders.denial(claim.name(), claim.key());
        if (busy != null) {
            // Whoever waits does not open a session at each attempt.
            return new ClaimAnswer.Denied(busy);
        }
        reserve(claim);
        LockSession session = null;
        boolean granted = false;
        try {
            LockSession own = sessions.open(left(until));
            session = own;
            // Its room is reserved.
            ClaimAnswer answer = claims.on(own, claim, UUID.randomUUID(), left(until), () -> 0);
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

    private static Duration left(long until) {
        return Duration.ofNanos(Math.max(1, until - System.nanoTime()));
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
    List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        Lane lane = caller == Caller.HEARTBEAT ? Lane.HEARTBEAT : Lane.WORK;
        Map<Renewal, Alive> alive = new HashMap<>();
        for (Renewal renewal : renewals) {
            Alive one = look(renewal, lane, budget);
            if (one != null) {
                alive.put(renewal, one);
            }
        }
        Map<String, String> askedFor =
                askedFor(alive.values().stream().map(Alive::tenure).toList(), lane, budget);
        return renewals.stream()
                .map(renewal -> {
                    Alive one = alive.get(renewal);
                    return one == null
                            ? AdvisoryStore.ended(renewal)
                            : new RenewalAnswer(
                                    renewal.name(),
                                    renewal.fence(),
                                    RenewalAnswer.Result.RENEWED,
                                    one.at().plus(settings.lease()),
                                    askedFor.get(renewal.name()));
                })
                .toList();
    }

    /**
     * Work whose session holds its key.
     *
     * @param at when the server saw it
     */
    private record Alive(Held tenure, Instant at) {}

    /** Null: it does not, any more. */
    private @Nullable Alive look(Renewal renewal, Lane lane, Duration budget) {
        long key = keys.key(identity.namespace(), renewal.name());
        LockSession session = working.get(key);
        Held tenure = session == null || session.hasEnded() ? null : session.held(key);
        if (session == null || tenure == null || tenure.fence() != renewal.fence()) {
            return null;
        }
        Renewal.Payload payload = renewal.payload();
        return holders.<@Nullable Alive>ask(lane, budget, (connection, unanswered) -> {
            Instant at = KeyHolders.timeIfHeldBy(connection, session.pid(), key);
            if (at == null) {
                return null;
            }
            if (payload != null) {
                rows.payload(connection, tenure, payload.data());
            }
            return new Alive(tenure, at);
        });
    }

    /** Whatever is in the way of reading the rows, the work goes on; what operators ask for is then heard later. */
    private Map<String, String> askedFor(List<Held> tenures, Lane lane, Duration budget) {
        if (tenures.isEmpty() || !rows.isThere()) {
            return Map.of();
        }
        try {
            return holders.ask(lane, budget, (connection, unanswered) -> rows.askedFor(connection, tenures));
        } catch (LockStorageException e) {
            log.debug("What operators ask for could not be read", e);
            return Map.of();
        }
    }
}
