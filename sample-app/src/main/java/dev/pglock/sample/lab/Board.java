package dev.pglock.sample.lab;

import dev.pglock.sample.lab.Run.State;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What has happened and how it is: written by the pipes of the replicas and by the watch of the locks, read by the page and
 * by the questions. Bounded: what is old is forgotten. Thread-safe.
 */
final class Board {

    private static final int EVENTS = 4000;

    private static final int SKIPS = 1500;

    /** Longer than the page shows, so that a page that is opened has a whole time line at once. */
    private static final Duration MEMORY = Duration.ofMinutes(2);

    private final ReentrantLock guard = new ReentrantLock();

    private final Condition changed = this.guard.newCondition();

    private final Deque<LabEvent> events = new ArrayDeque<>();

    private final Map<Long, Run> runs = new LinkedHashMap<>();

    private final Map<Long, Spell> spells = new LinkedHashMap<>();

    private final Deque<Skip> skips = new ArrayDeque<>();

    private final Map<String, LockView> locks = new LinkedHashMap<>();

    /** By which strategy a lock was taken last. */
    private final Map<String, String> strategies = new HashMap<>();

    /** What nobody was told yet. */
    private final List<LabEvent> newEvents = new ArrayList<>();

    private final Map<Long, Run> newRuns = new LinkedHashMap<>();

    private final Map<Long, Spell> newSpells = new LinkedHashMap<>();

    private final List<Skip> newSkips = new ArrayList<>();

    private long ids;

    private long looks;

    private volatile long offsetMillis;

    private volatile boolean databaseAnswers;

    /** The server's time, by the lab's clock and the offset measured last. */
    long now() {
        return System.currentTimeMillis() + this.offsetMillis;
    }

    /** The id of the last event: what comes later is greater. */
    long mark() {
        return locked(() -> this.ids);
    }

    // ---- written by

    /** A replica has told an event, in the words of its pipe. */
    void told(String replica, Map<String, Object> event) {
        String kind = String.valueOf(event.get("kind"));
        String lock = text(event, "lock");
        Long fence = event.get("fence") instanceof Number number ? number.longValue() : null;
        change(() -> {
            long at = at(event);
            if (kind.equals("SKIPPED")) {
                skip(new Skip(String.valueOf(lock), replica, at));
                return;
            }
            if (kind.equals("HEARTBEAT")) {
                advisoryRenewed(replica, at);
                return;
            }
            String reason = text(event, "reason");
            String outcome = text(event, "outcome");
            if (lock != null && fence != null) {
                apply(kind, lock, fence, replica, String.valueOf(event.get("strategy")), at, outcome);
            }
            if (!kind.equals("ENDED")) {
                add(new LabEvent(
                        ++this.ids,
                        at,
                        kind,
                        lock,
                        fence,
                        replica,
                        reason == null ? outcome : reason,
                        text(event, "detail")));
            }
        });
    }

    /** The server's time if it was told; otherwise when it was told, by the clock of this machine, which all share. */
    private long at(Map<String, Object> event) {
        if (event.get("at") instanceof Number number) {
            return number.longValue();
        }
        return event.get("told") instanceof Number number ? number.longValue() + this.offsetMillis : now();
    }

    private void apply(
            String kind, String lock, long fence, String replica, String strategy, long at, @Nullable String outcome) {
        if (kind.equals("TAKE")) {
            this.strategies.put(lock, strategy);
            put(Run.begun(++this.ids, lock, fence, replica, strategy, at));
            return;
        }
        Run run = find(lock, fence);
        if (run == null || !run.replica().equals(replica)) {
            return;
        }
        switch (kind) {
            case "RELEASE" -> {
                if (run.end() == null) {
                    put(run.ended("FAILED".equals(outcome) ? State.FAILED : State.DONE, at));
                }
            }
            case "LOST" -> {
                if (run.lostAt() == null) {
                    put(run.lost(at));
                }
            }
            case "ENDED" -> {
                if (run.end() == null) {
                    put(run.ended(run.state() == State.LOST ? State.LOST : State.DONE, at));
                }
            }
            default -> {}
        }
    }

    /** Something was done to a replica, or to the database. */
    void done(@Nullable String replica, String detail) {
        change(() -> add(new LabEvent(++this.ids, now(), "LAB", null, null, replica, null, detail)));
    }

    /** A process has ended, and with it whatever it ran. */
    void ended(String replica, boolean wasAsked) {
        change(() -> {
            long at = now();
            boolean ranNothing = true;
            for (Run run : List.copyOf(this.runs.values())) {
                if (run.replica().equals(replica) && run.end() == null) {
                    put(run.ended(run.isRunning() ? State.DIED : run.state(), at));
                    String detail = run.isRunning() ? "its replica died with it" : "its replica died";
                    add(new LabEvent(++this.ids, at, "DIED", run.lock(), run.fence(), replica, null, detail));
                    ranNothing = false;
                }
            }
            if (ranNothing && !wasAsked) {
                add(new LabEvent(++this.ids, at, "DIED", null, null, replica, null, "it ran nothing"));
            }
        });
    }

    /** A replica is in another condition from now on; {@code up} is none that is drawn. */
    void condition(String replica, String kind) {
        change(() -> {
            long at = now();
            for (Spell spell : List.copyOf(this.spells.values())) {
                if (spell.replica().equals(replica) && spell.to() == null) {
                    put(new Spell(spell.id(), replica, spell.kind(), spell.from(), at));
                }
            }
            if (!kind.equals("up")) {
                put(new Spell(++this.ids, replica, kind, at, null));
            }
        });
    }

    /** The rows as they were read. Which were renewed is seen by their ends; who lost his without knowing, by their fences. */
    void read(List<LockView> views, Predicate<String> isFrozen) {
        change(() -> {
            this.looks++;
            this.locks.keySet().retainAll(views.stream().map(LockView::name).toList());
            for (LockView view : views) {
                LockView complete = complete(view);
                LockView before = this.locks.put(view.name(), complete);
                renewed(before, complete);
                foresee(before, complete, isFrozen);
            }
        });
    }

    /** How far the server's clock is ahead of ours. */
    void offset(long millis) {
        this.offsetMillis = millis;
    }

    void databaseAnswers(boolean answers) {
        if (answers != this.databaseAnswers) {
            this.databaseAnswers = answers;
            change(() -> {});
        }
    }

    boolean databaseAnswers() {
        return this.databaseAnswers;
    }

    // ----

    /**
     * The row of a lock that is free does not say by which strategy it is taken; and what others see of an advisory lock is
     * its holder. The rest those have told who took it.
     */
    private LockView complete(LockView row) {
        LockView view = row.isHeld() ? row : row.by(this.strategies.getOrDefault(row.name(), row.strategy()));
        if (!view.isHeld() || (view.fence() != null && view.since() != null)) {
            return view;
        }
        Run running = null;
        for (Run run : this.runs.values()) {
            if (run.lock().equals(view.name())
                    && run.isRunning()
                    && run.replica().equals(view.holder())) {
                running = run;
            }
        }
        if (running == null) {
            return view;
        }
        return new LockView(
                view.name(),
                view.strategy(),
                view.state(),
                view.holder(),
                running.fence(),
                running.start(),
                view.until(),
                view.data(),
                view.lastTick(),
                view.lastHolder(),
                view.lastFinished(),
                view.lastOutcome(),
                view.completed(),
                view.paused(),
                view.waiting());
    }

    private final Map<String, Long> renewalsTold = new LinkedHashMap<>();

    /** A payload renews too, several times a second: one line a second is enough. */
    private void renewed(@Nullable LockView before, LockView now) {
        Long until = now.until();
        if (before == null || !now.isHeld() || until == null || before.until() == null || now.fence() == null) {
            return;
        }
        if (now.fence().equals(before.fence()) && until > before.until()) {
            long last = this.renewalsTold.getOrDefault(now.name(), 0L);
            if (until >= last + 1000) {
                this.renewalsTold.put(now.name(), until);
                add(new LabEvent(++this.ids, now(), "RENEW", now.name(), now.fence(), now.holder(), null, null));
            }
        }
    }

    private void advisoryRenewed(String replica, long at) {
        for (Run run : this.runs.values()) {
            if (run.isRunning()
                    && run.replica().equals(replica)
                    && run.strategy().equals("ADVISORY")) {
                add(new LabEvent(
                        ++this.ids, at, "RENEW", run.lock(), run.fence(), replica, null, "its session answers"));
            }
        }
    }

    /** What a replica that is frozen or dead cannot tell is seen in the row. */
    private void foresee(@Nullable LockView before, LockView row, Predicate<String> isFrozen) {
        if (row.fence() == null) {
            return;
        }
        for (Run run : List.copyOf(this.runs.values())) {
            if (!run.lock().equals(row.name()) || !run.strategy().equals("LEASE")) {
                continue;
            }
            boolean own = row.fence() == run.fence();
            if (run.state() == State.DIED
                    && own
                    && row.until() != null
                    && !row.until().equals(run.leaseEnd())) {
                put(run.leased(row.until()));
            } else if (run.isRunning() && isFrozen.test(run.replica())) {
                if (own && row.state().equals("FREE")) {
                    // It had released it, and was frozen before it could say so.
                    put(run.ended(State.DONE, row.lastFinished() == null ? now() : row.lastFinished()));
                } else if (own ? row.state().equals("EXPIRED") : row.fence() > run.fence()) {
                    foreseeLost(run, endOf(run, before, row));
                }
            }
        }
    }

    private void foreseeLost(Run run, long at) {
        put(run.lost(at));
        add(new LabEvent(
                ++this.ids, at, "LOST", run.lock(), run.fence(), run.replica(), "EXPIRED", "frozen, unaware of it"));
    }

    /** When its lease has ended: as the row says, or said last, and not later than another had the lock. */
    private long endOf(Run run, @Nullable LockView before, LockView row) {
        Long end = leaseEnd(run, row);
        if (end != null) {
            return end;
        }
        long taken = row.since() == null ? now() : row.since();
        Long said = before == null ? null : leaseEnd(run, before);
        return said == null ? taken : Math.min(said, taken);
    }

    private static @Nullable Long leaseEnd(Run run, LockView row) {
        return row.fence() != null && row.fence() == run.fence() ? row.until() : null;
    }

    private @Nullable Run find(String lock, long fence) {
        for (Run run : this.runs.values()) {
            if (run.fence() == fence && run.lock().equals(lock)) {
                return run;
            }
        }
        return null;
    }

    private void put(Run run) {
        this.runs.put(run.id(), run);
        this.newRuns.put(run.id(), run);
    }

    private void put(Spell spell) {
        this.spells.put(spell.id(), spell);
        this.newSpells.put(spell.id(), spell);
    }

    private void add(LabEvent event) {
        this.events.addLast(event);
        this.newEvents.add(event);
        if (this.events.size() > EVENTS) {
            this.events.removeFirst();
        }
    }

    private void skip(Skip skip) {
        this.skips.addLast(skip);
        this.newSkips.add(skip);
        if (this.skips.size() > SKIPS) {
            this.skips.removeFirst();
        }
    }

    private static @Nullable String text(Map<String, Object> event, String key) {
        Object value = event.get(key);
        return value == null ? null : value.toString();
    }

    // ---- read by

    /** All that there is, for a page that was just opened. */
    Report whole() {
        return locked(() -> new Report(
                now(),
                this.databaseAnswers,
                List.copyOf(this.locks.values()),
                List.copyOf(this.events),
                List.copyOf(this.runs.values()),
                List.copyOf(this.spells.values()),
                List.copyOf(this.skips)));
    }

    /** What is new since this was last called, and how it is. */
    Report news() {
        return locked(() -> {
            forget();
            Report report = new Report(
                    now(),
                    this.databaseAnswers,
                    List.copyOf(this.locks.values()),
                    List.copyOf(this.newEvents),
                    List.copyOf(this.newRuns.values()),
                    List.copyOf(this.newSpells.values()),
                    List.copyOf(this.newSkips));
            this.newEvents.clear();
            this.newRuns.clear();
            this.newSpells.clear();
            this.newSkips.clear();
            return report;
        });
    }

    private void forget() {
        long before = now() - MEMORY.toMillis();
        this.runs.values().removeIf(run -> run.end() != null && run.end() < before);
        this.spells.values().removeIf(spell -> spell.to() != null && spell.to() < before);
    }

    /** How often the rows were read. */
    long looks() {
        return locked(() -> this.looks);
    }

    /** How a lock was when it was read last, which may be long ago when the database did not answer. */
    Optional<LockView> lock(String name) {
        return locked(() -> Optional.ofNullable(this.locks.get(name)));
    }

    /** The runs of a lock that are remembered, the oldest first. */
    List<Run> runsOf(String lock) {
        return locked(() -> this.runs.values().stream()
                .filter(run -> run.lock().equals(lock))
                .toList());
    }

    /** The events after a mark, the oldest first. */
    List<LabEvent> eventsAfter(long mark) {
        return locked(
                () -> this.events.stream().filter(event -> event.id() > mark).toList());
    }

    /** Waits for an event after a mark, and returns the first. */
    Optional<LabEvent> await(long mark, Duration atMost, Predicate<LabEvent> event) throws InterruptedException {
        return await(
                atMost,
                () -> this.events.stream()
                        .filter(candidate -> candidate.id() > mark && event.test(candidate))
                        .findFirst());
    }

    /** Waits until there is something, looking after each change; empty when the time is over. */
    <T> Optional<T> await(Duration atMost, Supplier<Optional<T>> look) throws InterruptedException {
        long end = System.nanoTime() + atMost.toNanos();
        this.guard.lockInterruptibly();
        try {
            Optional<T> found = look.get();
            while (found.isEmpty()) {
                long left = end - System.nanoTime();
                if (left <= 0) {
                    return found;
                }
                // Not only after a change: the look may be at something else, such as the state of a replica.
                long ignored = this.changed.awaitNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(200)));
                found = look.get();
            }
            return found;
        } finally {
            this.guard.unlock();
        }
    }

    private void change(Runnable change) {
        this.guard.lock();
        try {
            change.run();
            this.changed.signalAll();
        } finally {
            this.guard.unlock();
        }
    }

    private <T> T locked(Supplier<T> look) {
        this.guard.lock();
        try {
            return look.get();
        } finally {
            this.guard.unlock();
        }
    }

    /**
     * What the page is told.
     *
     * @param now the server's time in milliseconds since 1970
     * @param databaseAnswers whether the rows could be read
     * @param locks all of them
     * @param events new ones
     * @param runs new ones, and those of which there is news
     * @param spells likewise
     * @param skips new ones
     */
    record Report(
            long now,
            boolean databaseAnswers,
            List<LockView> locks,
            List<LabEvent> events,
            List<Run> runs,
            List<Spell> spells,
            List<Skip> skips) {}
}
