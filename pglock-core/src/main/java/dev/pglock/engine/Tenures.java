package dev.pglock.engine;

import dev.pglock.LockObserver;
import dev.pglock.LockStorageException;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.StoreStatus;
import dev.pglock.TenureEnd;
import dev.pglock.store.LockStore;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** All tenures of this replica in one store, with the two threads that look after them. */
final class Tenures {

    private static final Logger log = LoggerFactory.getLogger(Tenures.class);
    private static final int CHANGE_ATTEMPTS = 4;

    private final LockStore store;
    private final String label;
    private final Outage outage;
    private final Listeners listeners;
    private final LateRenewals late;
    private final LockObserver observer;
    private final AtomicLong lost = new AtomicLong();
    private final Executor callbacks;
    private final Set<HeldLock> held = ConcurrentHashMap.newKeySet();
    private final Heartbeat heartbeat;
    private final Watchdog watchdog;
    private final Housekeeping housekeeping;
    private volatile boolean closed;

    Tenures(
            LockStore store,
            String label,
            @Nullable Duration heartbeatInterval,
            Listeners listeners,
            LockObserver observer,
            Executor callbacks) {
        this.store = store;
        this.label = label;
        this.listeners = listeners;
        this.late = new LateRenewals(listeners);
        this.observer = observer;
        this.callbacks = callbacks;
        this.outage = new Outage(store.strategy(), listeners, () -> probeSoon());
        this.heartbeat = new Heartbeat("pglock-heartbeat", store, outage, held, heartbeatInterval, late, listeners);
        this.watchdog = new Watchdog("pglock-watchdog", held);
        this.housekeeping = new Housekeeping("pglock-tidy-up", store, outage);
        housekeeping.start();
    }

    private void probeSoon() {
        housekeeping.probeSoon();
    }

    LockStore store() {
        return store;
    }

    Outage outage() {
        return outage;
    }

    LateRenewals lateRenewals() {
        return late;
    }

    void add(HeldLock lock) {
        if (held.isEmpty()) {
            heartbeat.restart();
        }
        held.add(lock);
        heartbeat.wakeBy(lock.firstRenewalAt(heartbeat.interval(lock.lease())));
        watchdog.wakeBy(lock.deadline());
    }

    /**
     * Whether this has ended for good. What is added is seen by its end, or the one who adds it sees that it has ended.
     */
    boolean isClosed() {
        return closed;
    }

    /** No heartbeat and no watchdog for it any more. */
    void forget(HeldLock lock) {
        held.remove(lock);
    }

    /** It was lost, and its body may run on: the store must not keep it for that. */
    void abandon(HeldLock lock) {
        store.abandon(new Tenancy(lock.name(), lock.key(), lock.fence()));
        if (!closed) {
            housekeeping.plan();
        }
    }

    List<HeldLock> held() {
        return List.copyOf(held);
    }

    boolean release(HeldLock lock, Release release) {
        if (closed) {
            throw new LockStorageException(
                    "Lock '" + lock.name() + "' was not released: its registry was closed before its body ended", null);
        }
        try {
            // What is not ours any more may be known without asking.
            return outage.observe(
                    new Outage.Question(lock.name(), "released"), () -> store.release(release), released -> released);
        } finally {
            housekeeping.plan();
        }
    }

    /** Extends a tenure or replaces its payload, on the caller's thread. */
    void change(HeldLock lock, Renewal renewal) {
        long pause = 100;
        for (int attempt = 1; ; attempt++) {
            long sentAt = System.nanoTime();
            Duration budget = Heartbeat.budget(heartbeat.interval(lock.lease()));
            RenewalAnswer answer = outage.observe(
                            new Outage.Question(lock.name(), "changed"),
                            () -> store.renew(List.of(renewal), budget, LockStore.Caller.HOLDER),
                            Heartbeat::isFromDatabase)
                    .get(0);
            Heartbeat.apply(answer, lock, sentAt, renewal.lease());
            late.tell();
            lock.ensureHeld();
            if (answer.result() == RenewalAnswer.Result.RENEWED) {
                watchdog.wakeBy(lock.deadline());
                return;
            }
            if (attempt == CHANGE_ATTEMPTS) {
                throw new LockStorageException(
                        "Lock '" + lock.name() + "' could not be changed: somebody else keeps its row locked", null);
            }
            try {
                Thread.sleep(pause);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LockStorageException("Interrupted while changing lock '" + lock.name() + "'", e);
            }
            pause *= 2;
        }
    }

    void callBack(HeldLock lock, Runnable action) {
        Runnable guarded = () -> {
            try {
                action.run();
            } catch (RuntimeException | Error e) {
                log.warn("A callback of lock '{}' failed", lock.name(), e);
            }
        };
        try {
            callbacks.execute(guarded);
        } catch (RejectedExecutionException e) {
            // The registry is closed, its threads are gone; the holder is told all the same.
            guarded.run();
        }
    }

    void reportLoss(HeldLock lock, LossReason reason, boolean interrupts) {
        String next = interrupts ? "its body is being interrupted" : "nobody is interrupted";
        if (reason == LossReason.CLOSED) {
            // There may be thousands, of which one line has told.
            log.debug("Lock '{}' (fence {}) is kept, and ends by its expiry; {}", lock.name(), lock.fence(), next);
        } else {
            log.error(
                    "Lock '{}' (fence {}) was lost by '{}': {}. Another replica may be granted it from now on; {}",
                    lock.name(),
                    lock.fence(),
                    label,
                    HeldLock.describe(reason),
                    next);
        }
        long ignored = lost.incrementAndGet();
        listeners.tellLater(l -> l.lost(lock, reason));
    }

    void reportResignation(HeldLock lock, String reason, boolean interrupts) {
        log.info(
                "Lock '{}' (fence {}) is asked for by an operator: {}; reason given: {}",
                lock.name(),
                lock.fence(),
                interrupts ? "its body is being interrupted" : "nobody is interrupted",
                reason);
        listeners.tellLater(l -> l.resigning(lock, reason));
    }

    void reportEnd(HeldLock lock, TenureEnd end) {
        listeners.tell(l -> l.ended(lock, end));
    }

    LockObserver.Running observe(HeldLock lock) {
        try {
            return observer.begin(lock);
        } catch (RuntimeException | Error e) {
            log.warn("A lock observer failed: {}", observer.getClass().getName(), e);
            return LockObserver.Running.UNOBSERVED;
        }
    }

    /** What an observer throws changes nothing. */
    void guarded(Runnable observation) {
        try {
            observation.run();
        } catch (RuntimeException | Error e) {
            log.warn("A lock observer failed: {}", observer.getClass().getName(), e);
        }
    }

    /** From memory. */
    StoreStatus status() {
        List<HeldLock> now = held();
        return new StoreStatus(
                store.strategy(),
                now.size(),
                store.sessions(),
                lost.get(),
                now.isEmpty() ? null : heartbeat.age(),
                now.stream()
                        .map(lock -> Duration.ofNanos(heartbeat.interval(lock.lease())))
                        .min(Comparator.naturalOrder())
                        .orElse(null),
                outage.lasting());
    }

    void reportRelease(HeldLock lock, RunOutcome outcome) {
        log.debug("Lock '{}' (fence {}) was released, {}", lock.name(), lock.fence(), outcome);
        listeners.tell(l -> l.released(lock, outcome));
    }

    /** Heartbeats are the last thing to stop, then the connections. */
    void close() {
        closed = true;
        // What was granted since the registry looked at what is held: nobody would renew it any more, or tell of its
        // end.
        held().forEach(lock -> lock.lose(LossReason.CLOSED));
        housekeeping.stop(500);
        heartbeat.stop(TimeUnit.SECONDS.toMillis(2));
        watchdog.stop(TimeUnit.SECONDS.toMillis(1));
        store.close();
    }
}
