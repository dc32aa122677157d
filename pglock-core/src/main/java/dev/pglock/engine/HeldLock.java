package dev.pglock.engine;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockObserver;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LockedCall;
import dev.pglock.LossReason;
import dev.pglock.OnLost;
import dev.pglock.RunOutcome;
import dev.pglock.TenureEnd;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A tenure of this replica: the handle that users see, and what heartbeat and watchdog need of it. */
final class HeldLock implements LockHandle {

    private static final Logger log = LoggerFactory.getLogger(HeldLock.class);
    private static final int NAMED_AT_MOST = 5;

    private final Terms terms;
    private final Tenures tenures;
    private final LocalTable.Permit permit;
    private final AtomicReference<Tenure> tenure;
    private final Execution execution = new Execution();

    private final ReentrantLock callbackGuard = new ReentrantLock();
    private final List<Runnable> callbacks = new ArrayList<>();
    private boolean callbacksRun;

    private final AtomicReference<@Nullable String> resignation = new AtomicReference<>();
    private final List<Runnable> whenResigning = new ArrayList<>();
    private volatile boolean takenUp;

    HeldLock(Terms terms, Tenures tenures, LocalTable.Permit permit, Tenure granted) {
        this.terms = terms;
        this.tenures = tenures;
        this.permit = permit;
        this.tenure = new AtomicReference<>(granted);
    }

    // ---- what users ask

    @Override
    public String name() {
        return terms.name();
    }

    @Override
    public @Nullable String family() {
        return terms.family();
    }

    @Override
    public Duration waited() {
        return terms.waited();
    }

    @Override
    public long key() {
        return terms.key();
    }

    @Override
    public LockStrategy strategy() {
        return terms.strategy();
    }

    @Override
    public long fence() {
        return now().fence();
    }

    @Override
    public Instant acquiredAt() {
        return now().acquiredAt();
    }

    @Override
    public Instant expiresAt() {
        return now().expiresAt();
    }

    @Override
    public boolean isHeld() {
        if (now().isTrusted(System.nanoTime())) {
            return true;
        }
        lose(LossReason.EXPIRED);
        return false;
    }

    @Override
    public Duration trustedFor() {
        long now = System.nanoTime();
        return now().isTrusted(now) ? Duration.ofNanos(Math.max(0, deadline() - now)) : Duration.ZERO;
    }

    @Override
    public void ensureHeld() {
        if (!isHeld()) {
            throw lostException();
        }
    }

    @Override
    public void extend(Duration duration) {
        EngineSettings.checkLease(duration);
        ensureHeld();
        // A session lasts as long as its heartbeats: no holder can be promised more of it than that.
        Duration granted = strategy() == LockStrategy.ADVISORY ? lease() : duration;
        tenures.change(this, new Renewal(name(), fence(), granted, null));
    }

    @Override
    public void data(@Nullable String data) {
        if (data != null) {
            LockRequest.checkData(data);
        }
        ensureHeld();
        tenures.change(this, new Renewal(name(), fence(), lease(), new Renewal.Payload(data)));
    }

    @Override
    public void onLost(Runnable action) {
        Objects.requireNonNull(action, "action");
        callbackGuard.lock();
        try {
            if (!callbacksRun) {
                callbacks.add(action);
                return;
            }
        } finally {
            callbackGuard.unlock();
        }
        tenures.callBack(this, action);
    }

    @Override
    public void onResign(Runnable action) {
        Objects.requireNonNull(action, "action");
        callbackGuard.lock();
        try {
            if (resignation.get() == null) {
                whenResigning.add(action);
                return;
            }
        } finally {
            callbackGuard.unlock();
        }
        tenures.callBack(this, action);
    }

    @Override
    public <T extends @Nullable Object, E extends Throwable> T execute(LockedCall<T, E> body) throws E {
        begin();
        Throwable failure = null;
        LockContext.Scope scope = LockContext.enter(this);
        LockObserver.Running observed = tenures.observe(this);
        try {
            ensureHeld();
            return body.call();
        } catch (Throwable t) {
            failure = t;
            throw t;
        } finally {
            scope.close();
            execution.end(failure);
            endAfterBody(failure);
            end(observed, failure);
        }
    }

    @Override
    public <T extends @Nullable Object, E extends Throwable> CompletableFuture<T> executeAsync(
            LockedCall<? extends CompletionStage<T>, E> body) throws E {
        begin();
        LaterResult<T> result;
        CompletionStage<T> stage;
        LockObserver.Running observed = tenures.observe(this);
        try (LockContext.Scope ignored = LockContext.enter(this)) {
            ensureHeld();
            stage = Objects.requireNonNull(body.call(), "The body returned no stage");
            result = new LaterResult<>(stage);
        } catch (Throwable t) {
            execution.end(t);
            endAfterBody(t);
            end(observed, t);
            throw t;
        }
        tenures.guarded(observed::leaveThread);
        execution.leaveThread(cancellation(result));
        stage.whenComplete((value, failure) -> {
            execution.end(failure);
            Throwable cause = failure == null ? null : LaterResult.causeOf(failure);
            endAfterBody(cause);
            tenures.guarded(() -> observed.end(cause, now().loss() != null));
            result.complete(value, failure);
        });
        return result;
    }

    /** Elsewhere, because whatever depends on the stage runs where it is cancelled: never among the heartbeats. */
    private Execution.Cancellation cancellation(LaterResult<?> result) {
        return new Execution.Cancellation() {

            @Override
            public boolean endsTheWork() {
                return result.cancellingEndsTheWork();
            }

            @Override
            public void cancel() {
                tenures.callBack(HeldLock.this, () -> result.cancelBody(now().loss() == null ? null : lostException()));
            }
        };
    }

    private void end(LockObserver.Running observed, @Nullable Throwable failure) {
        tenures.guarded(observed::leaveThread);
        tenures.guarded(() -> observed.end(failure, now().loss() != null));
    }

    private void begin() {
        switch (execution.begin()) {
            case NOT_BEGUN -> {
                // From here on it runs.
            }
            case RUNNING ->
                throw new IllegalStateException("A body already runs under this handle of lock '" + name() + "'");
            case ENDED ->
                throw new IllegalStateException(
                        "Lock '" + name() + "' has been released: its handle runs no body any more");
        }
    }

    @Override
    public boolean release() {
        return switch (execution.endUnbegun()) {
            case NOT_BEGUN -> end(RunOutcome.SUCCEEDED, null);
            case RUNNING ->
                throw new IllegalStateException(
                        "Lock '" + name() + "' cannot be released while a body runs under its handle: "
                                + "execute releases it when the body has ended");
            case ENDED -> false;
        };
    }

    @Override
    public void close() {
        switch (execution.endUnbegun()) {
            case NOT_BEGUN -> endAfterBody(null);
            case RUNNING ->
                log.debug("Lock '{}' is released when the body that runs under its handle has ended", name());
            case ENDED -> {
                // Whoever ended it releases it.
            }
        }
    }

    // ---- what heartbeat, watchdog and shutdown need

    Duration lease() {
        return terms.lease();
    }

    /** {@link System#nanoTime()} at which its first renewal is due. */
    long firstRenewalAt(long interval) {
        return terms.heldSince() + interval;
    }

    /** Whether heartbeats know of it. */
    boolean isTakenUp() {
        return takenUp;
    }

    /** From now on every regular heartbeat renews it, whatever becomes of the first. */
    void takeUp() {
        takenUp = true;
    }

    /** {@link System#nanoTime()} at which the watchdog has to look at this tenure again. */
    long deadline() {
        long trustedUntil = now().trustedUntil();
        Long giveUpAt = terms.giveUpAt();
        return giveUpAt != null && giveUpAt - trustedUntil < 0 ? giveUpAt : trustedUntil;
    }

    /** Ends the tenure if its time is over, either way. */
    void checkDeadline(long now) {
        Long giveUpAt = terms.giveUpAt();
        if (giveUpAt != null && now - giveUpAt >= 0) {
            lose(LossReason.MAX_HOLD);
        } else if (!now().isTrusted(now)) {
            lose(LossReason.EXPIRED);
        }
    }

    boolean isIn(Collection<Tenures> registry) {
        return registry.contains(tenures);
    }

    Renewal renewal() {
        return new Renewal(name(), fence(), lease(), null);
    }

    /** The server accepted a renewal that was sent at that moment. */
    void renewed(Instant expiresAt, long sentAt, Duration lease) {
        long now = System.nanoTime();
        Duration left = Duration.ofNanos(now().trustedUntil() - now);
        if (!left.isNegative() && left.compareTo(Tenure.trusted(lease()).dividedBy(4)) < 0) {
            tenures.lateRenewals().add(this, left);
        }
        tenure.updateAndGet(t -> t.renewed(expiresAt, sentAt, lease, now));
        if (!isHeld()) {
            log.debug("The renewal of lock '{}' was answered after its trust had ended: it revives nothing", name());
        }
    }

    /** The tenure is over before its release. The first reason counts. */
    void lose(LossReason reason) {
        Tenure before = tenure.getAndUpdate(t -> t.lost(reason));
        if (before.phase() != Tenure.Phase.HELD) {
            return;
        }
        tenures.forget(this);
        // The body is told before anybody else: what listeners do must not keep it from that.
        boolean interrupted = terms.onLost() == OnLost.INTERRUPT && execution.lose();
        tenures.abandon(this);
        tenures.reportLoss(this, reason, interrupted);
        List<Runnable> actions;
        callbackGuard.lock();
        try {
            callbacksRun = true;
            actions = List.copyOf(callbacks);
        } finally {
            callbackGuard.unlock();
        }
        actions.forEach(action -> tenures.callBack(this, action));
    }

    /** An operator asks for the lock. The first time counts. */
    void resign(String reason) {
        List<Runnable> actions;
        callbackGuard.lock();
        try {
            if (!resignation.compareAndSet(null, reason)) {
                return;
            }
            actions = List.copyOf(whenResigning);
        } finally {
            callbackGuard.unlock();
        }
        boolean interrupted = execution.askToEnd();
        tenures.reportResignation(this, reason, interrupted);
        actions.forEach(action -> tenures.callBack(this, action));
    }

    /** The registry is stopping: the body is asked to end, the lock stays its own until it has. */
    void interruptBody() {
        boolean ignored = execution.askToEnd();
    }

    LockLostException lostException() {
        Tenure t = now();
        String why = t.loss() == null ? "it was released" : describe(t.loss());
        return new LockLostException(name(), t.fence(), why);
    }

    static String describe(LossReason reason) {
        return switch (reason) {
            case EXPIRED -> "it could not be renewed in time";
            case TAKEN -> "the database says that this tenure has ended";
            case SESSION_ENDED -> "the session that carried it has ended";
            case MAX_HOLD -> "its body ran longer than maxHold";
            case CLOSED -> "the registry was closed";
        };
    }

    // ---- the end

    private void endAfterBody(@Nullable Throwable failure) {
        try {
            end(failure == null ? RunOutcome.SUCCEEDED : RunOutcome.FAILED, failure);
        } catch (RuntimeException e) {
            if (failure != null) {
                failure.addSuppressed(e);
            }
            log.warn(
                    "Lock '{}' (fence {}) could not be released and stays closed until it expires{}: {}",
                    name(),
                    fence(),
                    terms.version() == null || failure != null
                            ? ""
                            : "; that version " + terms.version() + " is done was not remembered, so it may run again",
                    e.getMessage());
        }
    }

    /** To be called once, by whoever ended the execution: nobody else does. */
    private boolean end(RunOutcome asked, @Nullable Throwable failure) {
        long began = System.nanoTime();
        TenureEnd.Result result = TenureEnd.Result.ERROR;
        try {
            if (!now().isTrusted(System.nanoTime())) {
                lose(LossReason.EXPIRED);
            }
            Tenure before = tenure.getAndUpdate(Tenure::released);
            LossReason loss = before.loss();
            if (loss != null) {
                result = TenureEnd.Result.LOST;
                releaseWhatIsLeft(loss, failure);
                return false;
            }
            tenures.forget(this);
            boolean stillOurs = tenures.release(this, released(asked, failure));
            result = stillOurs ? TenureEnd.Result.RELEASED : TenureEnd.Result.LOST;
            if (stillOurs) {
                tenures.reportRelease(this, asked);
            } else {
                log.warn(
                        "Lock '{}' (fence {}) had already been lost when it was released: another replica may have "
                                + "run at the same time. Nothing of theirs was touched",
                        name(),
                        fence());
            }
            return stillOurs;
        } finally {
            permit.giveBack();
            tenures.reportEnd(this, ending(asked, result, began));
        }
    }

    private TenureEnd ending(RunOutcome asked, TenureEnd.Result result, long began) {
        return new TenureEnd(
                result == TenureEnd.Result.LOST ? RunOutcome.LOST : asked,
                result,
                Duration.ofNanos(began - terms.heldSince()),
                Duration.ofNanos(System.nanoTime() - began));
    }

    /**
     * After a loss the row may still bear our name: the body has ended now, so that nobody needs to wait for its expiry.
     * Where the database has told us that the tenure is over there is nothing left. What a registry kept when it was closed
     * stays kept: that its body's stage was cancelled for it does not say that its work has ended.
     */
    private void releaseWhatIsLeft(LossReason loss, @Nullable Throwable failure) {
        if (loss == LossReason.TAKEN || loss == LossReason.SESSION_ENDED || loss == LossReason.CLOSED) {
            return;
        }
        try {
            tenures.release(this, released(RunOutcome.LOST, failure));
        } catch (LockStorageException e) {
            log.debug("Lock '{}' was lost and could not be released either", name(), e);
        }
    }

    private Release released(RunOutcome outcome, @Nullable Throwable failure) {
        return new Release(
                name(),
                key(),
                fence(),
                outcome,
                failure == null ? null : failure.getClass().getName(),
                terms.minHold(),
                outcome == RunOutcome.SUCCEEDED ? terms.version() : null,
                terms.endCounts());
    }

    private Tenure now() {
        return tenure.get();
    }

    /** For a log: the first of them by name and fence, and how many there are besides. */
    static String named(List<HeldLock> locks) {
        String first = locks.stream()
                .limit(NAMED_AT_MOST)
                .map(lock -> "'" + lock.name() + "' (fence " + lock.fence() + ")")
                .collect(Collectors.joining(", "));
        return locks.size() <= NAMED_AT_MOST ? first : first + " and " + (locks.size() - NAMED_AT_MOST) + " more";
    }

    /**
     * On what terms the lock is held.
     *
     * @param giveUpAt {@link System#nanoTime()} at which {@code maxHold} is over; null: never
     * @param heldSince {@link System#nanoTime()} before the granting statement was sent
     * @param endCounts a delay until the next run is counted from the release
     */
    record Terms(
            String name,
            @Nullable String family,
            Duration waited,
            long heldSince,
            long key,
            LockStrategy strategy,
            Duration lease,
            @Nullable Duration minHold,
            @Nullable Long giveUpAt,
            OnLost onLost,
            @Nullable String version,
            boolean endCounts) {}

    @Override
    public String toString() {
        Tenure t = now();
        return "LockHandle[" + name() + ", fence " + t.fence() + ", " + t.phase() + "]";
    }
}
