package dev.pglock.engine;

import dev.pglock.LockStorageException;
import dev.pglock.LossReason;
import dev.pglock.store.LockStore;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Renews everything that this replica holds in one store: one statement per interval, on a thread and a connection of its
 * own. What could not be renewed is asked again soon, and delays nothing else; when its time is over is the watchdog's
 * decision.
 */
final class Heartbeat extends Pulse {

    /** The most tenures in one statement. */
    static final int CHUNK = 1000;

    private static final long[] AGAIN_AFTER = {
        TimeUnit.MILLISECONDS.toNanos(100), TimeUnit.MILLISECONDS.toNanos(200), TimeUnit.MILLISECONDS.toNanos(400)
    };
    private static final long LEAST_INTERVAL = TimeUnit.MILLISECONDS.toNanos(20);

    /** A healthy network may need that much. Of the shortest lease's trust as much is left after an interval. */
    private static final long LEAST_BUDGET = TimeUnit.MILLISECONDS.toNanos(200);

    private final LockStore store;
    private final Outage outage;
    private final Collection<HeldLock> held;
    private final @Nullable Duration configured;

    private final LateRenewals late;
    private final Listeners listeners;
    private volatile long lastGood = System.nanoTime();

    private @Nullable Long lastBeat;
    private List<HeldLock> again = List.of();
    private long againAt;
    private int attempt;

    Heartbeat(
            String name,
            LockStore store,
            Outage outage,
            Collection<HeldLock> held,
            @Nullable Duration configured,
            LateRenewals late,
            Listeners listeners) {
        super(name);
        this.late = late;
        this.listeners = listeners;
        this.store = store;
        this.outage = outage;
        this.held = held;
        this.configured = configured;
    }

    /**
     * How long after its grant was asked for a tenure is to be renewed: twice before its trust ends, which of a short lease is long before
     * the lease does.
     */
    long interval(Duration lease) {
        long third = Tenure.trusted(lease).toNanos() / 3;
        long interval = configured == null ? third : Math.min(configured.toNanos(), third);
        return Math.max(LEAST_INTERVAL, interval);
    }

    /** How long the answer to a renewal may take: an interval, so that there is time for another. */
    static Duration budget(long interval) {
        return Duration.ofNanos(Math.max(LEAST_BUDGET, interval));
    }

    /** Something is held again: until now there was nothing to renew. */
    void restart() {
        lastGood = System.nanoTime();
    }

    /** How long ago the last one succeeded. */
    Duration age() {
        return Duration.ofNanos(Math.max(0, System.nanoTime() - lastGood));
    }

    @Override
    @Nullable
    Long beat(long now) {
        List<HeldLock> all = List.copyOf(held);
        if (all.isEmpty()) {
            again = List.of();
            return null;
        }
        long interval =
                all.stream().mapToLong(lock -> interval(lock.lease())).min().getAsLong();
        if (lastBeat == null || now - (lastBeat + interval) >= 0) {
            lastBeat = now;
            attempt = 0;
            again = renew(all, interval);
            planAgain();
        } else {
            List<HeldLock> due = betweenBeats(all, now);
            if (!due.isEmpty()) {
                again = renew(due, interval);
                planAgain();
            }
        }
        long regular = lastBeat + interval;
        return !again.isEmpty() && againAt - regular < 0 ? againAt : regular;
    }

    /**
     * What must not wait for the next regular beat: what is to be asked again, and what was granted by an answer that was
     * late, because its trust counts from the question.
     */
    private List<HeldLock> betweenBeats(List<HeldLock> all, long now) {
        List<HeldLock> late = all.stream()
                .filter(lock -> !lock.isTakenUp() && now - lock.firstRenewalAt(interval(lock.lease())) >= 0)
                .toList();
        boolean isAgainDue = !again.isEmpty() && now - againAt >= 0;
        if (late.isEmpty() && !isAgainDue) {
            return List.of();
        }
        List<HeldLock> due = new ArrayList<>(late);
        again.stream().filter(held::contains).forEach(due::add);
        return due;
    }

    private void planAgain() {
        againAt = System.nanoTime() + AGAIN_AFTER[Math.min(attempt, AGAIN_AFTER.length - 1)];
        attempt++;
    }

    /**
     * Renews them, a chunk at a time.
     *
     * @return those that are to be asked again: skipped ones, and after an exception all that have no answer
     */
    private List<HeldLock> renew(List<HeldLock> locks, long interval) {
        locks.forEach(HeldLock::takeUp);
        List<HeldLock> open = new ArrayList<>();
        long began = System.nanoTime();
        boolean answered = true;
        for (int from = 0; from < locks.size(); from += CHUNK) {
            List<HeldLock> chunk = locks.subList(from, Math.min(locks.size(), from + CHUNK));
            try {
                open.addAll(renewChunk(chunk, budget(interval)));
            } catch (LockStorageException e) {
                open.addAll(locks.subList(from, locks.size()));
                answered = false;
                break;
            }
        }
        report(answered, began);
        late.tell();
        return open;
    }

    private void report(boolean answered, long began) {
        long now = System.nanoTime();
        if (answered) {
            lastGood = now;
        }
        listeners.tellLater(l -> l.heartbeat(store.strategy(), answered, Duration.ofNanos(now - began)));
    }

    private List<HeldLock> renewChunk(List<HeldLock> chunk, Duration budget) {
        Map<String, HeldLock> byName = new HashMap<>();
        List<Renewal> renewals = new ArrayList<>(chunk.size());
        for (HeldLock lock : chunk) {
            byName.put(lock.name(), lock);
            renewals.add(lock.renewal());
        }
        long sentAt = System.nanoTime();
        List<RenewalAnswer> answers = outage.observe(
                null, () -> store.renew(renewals, budget, LockStore.Caller.HEARTBEAT), Heartbeat::isFromDatabase);
        List<HeldLock> skipped = new ArrayList<>();
        for (RenewalAnswer answer : answers) {
            HeldLock lock = byName.get(answer.name());
            if (lock == null || lock.fence() != answer.fence()) {
                continue;
            }
            apply(answer, lock, sentAt, lock.lease());
            if (answer.result() == RenewalAnswer.Result.SKIPPED) {
                skipped.add(lock);
            }
        }
        return skipped;
    }

    /** That a session has ended is known without asking. */
    static boolean isFromDatabase(List<RenewalAnswer> answers) {
        return answers.stream().anyMatch(answer -> answer.result() != RenewalAnswer.Result.SESSION_ENDED);
    }

    /** Lets a tenure know what the server said of its renewal. */
    static void apply(RenewalAnswer answer, HeldLock lock, long sentAt, Duration lease) {
        switch (answer.result()) {
            case RENEWED -> {
                Instant expiresAt = answer.expiresAt();
                if (expiresAt != null) {
                    lock.renewed(expiresAt, sentAt, lease);
                }
                if (answer.resign() != null) {
                    lock.resign(answer.resign());
                }
            }
            case LOST -> lock.lose(LossReason.TAKEN);
            case SESSION_ENDED -> lock.lose(LossReason.SESSION_ENDED);
            case SKIPPED -> {
                // Nothing is known but that it is still ours.
            }
        }
    }
}
