package dev.pglock.engine;

import dev.pglock.CommitFence;
import dev.pglock.ConnectionWork;
import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockInfo;
import dev.pglock.LockListener;
import dev.pglock.LockNames;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockObserver;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.StoreStatus;
import dev.pglock.Tick;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.WakeUps;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The registry of one replica over one or more stores. Thread-safe. It starts its threads with the first grant; all are
 * daemons named {@code pglock-*}.
 *
 * <pre>{@code
 * LockEngine registry = LockEngine.builder(EngineSettings.defaults("orders", "pod-1", LockStrategy.LEASE))
 *         .store(store)
 *         .build();
 * }</pre>
 */
public final class LockEngine implements LockRegistry, AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(LockEngine.class);
    private static final long IDLE_POLL_MILLIS = 20;
    private static final long LAST_WAIT_MILLIS = 500;

    /** So many that some that never return keep the others from nothing. */
    private static final int CALLBACK_THREADS = 64;

    private final EngineSettings settings;
    private final Listeners listeners;
    private final Homes homes;
    private final Requests requests;
    private final Operators operators;
    private final LocalTable local = new LocalTable();
    private final Gate gate = new Gate();
    private final Waiting waiting;
    private final WakeUps wakeUps;
    private final ExecutorService callbacks;

    private LockEngine(Builder builder) {
        this.settings = builder.settings;
        this.listeners = new Listeners(builder.listeners);
        this.wakeUps = builder.wakeUps;
        this.waiting = new Waiting(gate, wakeUps);
        this.callbacks = Threads.pool("pglock-callback", CALLBACK_THREADS);
        this.homes = new Homes(
                settings.strategy(),
                builder.stores.stream()
                        .map(store -> new Tenures(
                                store,
                                settings.label(),
                                settings.heartbeatInterval(),
                                listeners,
                                builder.observer,
                                callbacks))
                        .toList());
        this.requests = new Requests(settings, builder.keys, builder.overrides, homes);
        this.operators = new Operators(homes, requests);
    }

    /**
     * Begins a registry.
     *
     * @param settings the defaults
     * @return a builder
     */
    public static Builder builder(EngineSettings settings) {
        return new Builder(settings);
    }

    // ---- taking locks

    @Override
    public LockAttempt attempt(LockRequest request, @Nullable Tick tick) {
        Asked asked = requests.resolve(request).at(tick);
        Settlement settlement = new Settlement(listeners, asked.request(), asked.strategy());
        try {
            LockAttempt attempt = attempt(asked);
            settlement.settled(attempt);
            return attempt;
        } finally {
            settlement.tell();
        }
    }

    private LockAttempt attempt(Asked asked) {
        if (!gate.isOpen()) {
            return denied(Denial.of(asked.name(), DenialReason.STOPPING));
        }
        LocalTable.Permit permit = local.tryEnter(asked.name());
        if (permit != null && !gate.isOpen()) {
            // It closed meanwhile, and whoever closed it may have seen nothing that is held.
            permit.giveBack();
            return denied(Denial.of(asked.name(), DenialReason.STOPPING));
        }
        return permit == null ? denied(local.denial(asked.name(), settings.label())) : claimOnce(asked, permit);
    }

    @Override
    public LockHandle acquire(LockRequest request) throws InterruptedException {
        return acquire(requests.resolve(request));
    }

    private LockHandle acquire(Asked asked) throws InterruptedException {
        Settlement settlement = new Settlement(listeners, asked.request(), asked.strategy());
        try {
            LockHandle lock = acquire(asked, settlement);
            settlement.acquired();
            return lock;
        } catch (LockNotAcquiredException e) {
            settlement.notAcquired(e);
            throw e;
        } catch (InterruptedException e) {
            settlement.interrupted();
            throw e;
        } finally {
            settlement.tell();
        }
    }

    private LockHandle acquire(Asked asked, Settlement settlement) throws InterruptedException {
        Deadline deadline = Deadline.in(asked.waitTimeout());
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        LocalTable.Permit permit = local.tryEnter(asked.name());
        if (permit == null) {
            settlement.waits();
            permit = local.enter(asked.name(), deadline, gate::isOpen);
        }
        if (permit == null) {
            throw waiting.notAcquired(local.denial(asked.name(), settings.label()), deadline);
        }
        LocalTable.Permit mine = permit;
        boolean granted = false;
        try {
            LockHandle lock =
                    waiting.until(deadline, asked.name(), asked.key(), () -> settlement.answered(claim(asked, mine)));
            granted = true;
            return lock;
        } finally {
            if (!granted) {
                mine.giveBack();
            }
        }
    }

    private LockAttempt claimOnce(Asked asked, LocalTable.Permit permit) {
        boolean granted = false;
        try {
            LockAttempt attempt = claim(asked, permit);
            granted = attempt instanceof LockAttempt.Granted;
            return attempt;
        } finally {
            if (!granted) {
                permit.giveBack();
            }
        }
    }

    private LockAttempt claim(Asked asked, LocalTable.Permit permit) {
        Tenures home = asked.home();
        long sentAt = System.nanoTime();
        Claim claim = new Claim(
                asked.name(),
                asked.key(),
                asked.lease(),
                asked.request().version(),
                asked.request().data(),
                asked.tick());
        ClaimAnswer answer = home.outage()
                .observe(
                        new Outage.Question(asked.name(), "claimed"),
                        () -> asked.isForWork()
                                ? home.store().claimForWork(claim)
                                : home.store().claim(claim));
        if (answer instanceof ClaimAnswer.Denied denied) {
            return denied(denied.denial());
        }
        ClaimAnswer.Granted granted = (ClaimAnswer.Granted) answer;
        Tenure tenure =
                Tenure.granted(granted.fence(), granted.acquiredAt(), granted.expiresAt(), sentAt, asked.lease());
        if (!tenure.isTrusted(System.nanoTime())) {
            LockStorageException tooLate = new LockStorageException(
                    "The grant of lock '" + asked.name() + "' was answered later than its lease of "
                            + asked.lease().toMillis() + " ms can be trusted; raise the lease duration if that goes on",
                    null);
            giveBackUnused(asked, granted, tooLate);
            throw tooLate;
        }
        HeldLock lock = new HeldLock(asked.terms(sentAt), home, permit, tenure);
        permit.heldBy(lock);
        try {
            home.add(lock);
        } catch (RuntimeException | Error e) {
            // No thread for its heartbeats, say. Nobody has the handle: what stayed would be renewed for ever.
            home.forget(lock);
            giveBackUnused(asked, granted, e);
            throw e;
        }
        if (home.isClosed()) {
            // Nobody would renew it, or tell of its end.
            home.forget(lock);
            giveBackUnused(asked, granted, null);
            return denied(Denial.of(asked.name(), DenialReason.STOPPING));
        }
        listeners.tell(l -> l.acquired(lock));
        log.debug("Lock '{}' (fence {}) was acquired", lock.name(), lock.fence());
        return new LockAttempt.Granted(lock);
    }

    /**
     * It was granted, and nobody got it.
     *
     * @param why what is also told if it could not be given back, and ends by its expiry; null: nobody
     */
    private static void giveBackUnused(Asked asked, ClaimAnswer.Granted granted, @Nullable Throwable why) {
        try {
            boolean ignored = asked.home()
                    .store()
                    .release(new Release(
                            asked.name(), asked.key(), granted.fence(), RunOutcome.LOST, null, null, null, false));
        } catch (LockStorageException e) {
            log.debug("Lock '{}' was granted in vain and could not be given back", asked.name(), e);
            if (why != null) {
                why.addSuppressed(e);
            }
        }
    }

    private LockAttempt denied(Denial denial) {
        log.debug("Lock '{}' was not acquired: {}", denial.name(), denial.describe());
        listeners.tell(l -> l.denied(denial));
        return new LockAttempt.Denied(denial);
    }

    // ---- with the caller's connections, or ours

    @Override
    public boolean tryAcquireInTransaction(Connection transaction, String name) {
        String normal = LockNames.normalise(name);
        if (!gate.isOpen()) {
            return false;
        }
        Tenures home = homes.own();
        return home.outage()
                .observe(
                        new Outage.Question(normal, "taken in a transaction"),
                        () -> home.store().tryInTransaction(transaction, normal, requests.key(normal)));
    }

    @Override
    public <T extends @Nullable Object> T onConnection(LockRequest request, ConnectionWork<T> work)
            throws InterruptedException, SQLException {
        Asked asked = requests.resolve(request).forWork();
        LockStore store = asked.home().store();
        LockHandle lock = acquire(asked);
        LockStore.Tenancy held = new LockStore.Tenancy(lock.name(), lock.key(), lock.fence());
        try {
            return lock.<T, SQLException>execute(() -> store.onConnection(held, work));
        } finally {
            store.abandon(held);
        }
    }

    /**
     * What lets transactions of the application commit only while the leases of this registry are held.
     *
     * @return the fence; it takes no connection until it is asked
     */
    public CommitFence commitFence() {
        Tenures leases = homes.find(LockStrategy.LEASE);
        return new LeaseFence(this, leases == null ? null : leases.store());
    }

    // ---- looking, and operators

    /**
     * Refuses what each attempt would refuse, whoever holds the lock. Does not block.
     *
     * @param request as it would be asked for
     * @throws IllegalArgumentException if it cannot be carried out as it is asked and configured; the message says why
     */
    public void check(LockRequest request) {
        Asked ignored = requests.resolve(request);
    }

    /**
     * Whether a success of the request's version could be remembered at this moment. Blocks for one round trip.
     *
     * @param request as it would be asked for
     * @return false if its strategy lacks the table that it needs for that
     * @throws LockStorageException if the database failed
     */
    public boolean remembers(LockRequest request) {
        return requests.resolve(request).home().store().remembers();
    }

    @Override
    public boolean owns(LockHandle lock) {
        return lock instanceof HeldLock held && held.isIn(homes.all());
    }

    @Override
    public Optional<LockInfo> find(String name) {
        return operators.find(name);
    }

    @Override
    public List<LockInfo> findAll() {
        return operators.findAll();
    }

    @Override
    public boolean forceRelease(String name, String reason, boolean now) {
        return operators.forceRelease(name, reason, now);
    }

    @Override
    public void pause(String name, String reason) {
        operators.pause(name, reason);
    }

    @Override
    public boolean resume(String name, String reason) {
        return operators.resume(name, reason);
    }

    @Override
    public boolean resign(String name, String reason) {
        return operators.resign(name, reason);
    }

    @Override
    public List<StoreStatus> status() {
        return homes.all().stream().map(Tenures::status).toList();
    }

    // ---- stopping

    /** Takes locks again after a {@link #stop}. */
    public void start() {
        gate.open();
    }

    /**
     * Takes no new locks, and waits for the bodies that run. Heartbeats go on.
     *
     * @param grace how long to wait at most
     * @return whether nothing is held any more
     */
    public boolean stop(Duration grace) {
        gate.close();
        local.wakeAll();
        Deadline deadline = Deadline.in(grace);
        boolean interrupted = false;
        while (!local.isIdle() && !deadline.isOver() && !interrupted) {
            interrupted = !sleep(IDLE_POLL_MILLIS);
        }
        return local.isIdle();
    }

    /** Interrupts the bodies that still run. Their locks stay theirs until they have ended. */
    public void interruptBodies() {
        homes.all().forEach(t -> t.held().forEach(HeldLock::interruptBody));
    }

    /**
     * Whether this registry takes locks.
     *
     * @return false after a {@link #stop} or {@link #close}
     */
    public boolean isRunning() {
        return gate.isOpen();
    }

    /**
     * Ends the registry for good: takes no new locks, interrupts the bodies that still run, gives them a moment to end,
     * and stops heartbeats and connections. The lock of a body that runs on is kept, never released: it ends by its
     * expiry. Idempotent; takes some seconds at most.
     */
    @Override
    public void close() {
        gate.close();
        local.wakeAll();
        if (!local.isIdle()) {
            interruptBodies();
            stop(Duration.ofMillis(LAST_WAIT_MILLIS));
        }
        List<HeldLock> kept =
                homes.all().stream().flatMap(t -> t.held().stream()).toList();
        if (!kept.isEmpty()) {
            warnOf(kept);
        }
        kept.forEach(lock -> lock.lose(LossReason.CLOSED));
        wakeUps.close();
        homes.all().forEach(Tenures::close);
        callbacks.shutdown();
        listeners.close(LAST_WAIT_MILLIS);
    }

    private void warnOf(List<HeldLock> kept) {
        log.warn(
                "Locks are still in use while '{}' closes: {}. They are kept, and end by their expiry",
                settings.label(),
                HeldLock.named(kept));
    }

    private static boolean sleep(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Builds a {@link LockEngine}. */
    public static final class Builder {

        private final EngineSettings settings;
        private final List<LockStore> stores = new ArrayList<>();
        private final List<LockListener> listeners = new ArrayList<>();
        private LockObserver observer = LockObserver.NONE;
        private KeyDerivation keys = KeyDerivation.SHA256;
        private WakeUps wakeUps = WakeUps.NONE;
        private UnaryOperator<LockRequest> overrides = UnaryOperator.identity();

        private Builder(EngineSettings settings) {
            this.settings = settings;
        }

        /**
         * Adds a store. It is closed with the registry.
         *
         * @param store at most one per strategy
         * @return this
         */
        public Builder store(LockStore store) {
            stores.add(store);
            return this;
        }

        /**
         * Adds a listener.
         *
         * @param listener told of everything that happens to the locks of this registry
         * @return this
         */
        public Builder listener(LockListener listener) {
            listeners.add(listener);
            return this;
        }

        /**
         * Sets what observes the bodies that run under locks.
         *
         * @param told by default {@link LockObserver#NONE}
         * @return this
         */
        public Builder observer(LockObserver told) {
            observer = told;
            return this;
        }

        /**
         * Replaces the derivation of advisory keys. All replicas must have the same.
         *
         * @param derivation by default {@link KeyDerivation#SHA256}
         * @return this
         */
        public Builder keys(KeyDerivation derivation) {
            keys = derivation;
            return this;
        }

        /**
         * Sets what tells those who wait that a lock was released. It is closed with the registry.
         *
         * @param tells by default {@link WakeUps#NONE}: waiting is polling, once a second in the end
         * @return this
         */
        public Builder wakeUps(WakeUps tells) {
            wakeUps = tells;
            return this;
        }

        /**
         * Sets what is applied to every request before it is carried out: configuration that wins over the program.
         *
         * @param operator must be pure
         * @return this
         */
        public Builder overrides(UnaryOperator<LockRequest> operator) {
            overrides = operator;
            return this;
        }

        /**
         * Builds the registry, ready to take locks. Opens no connection.
         *
         * @return the registry
         */
        public LockEngine build() {
            return new LockEngine(this);
        }
    }
}
