package dev.pglock.jdbc;

import dev.pglock.store.WakeUps;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Wake-ups by LISTEN and NOTIFY: one session and one daemon thread per replica, outside every pool, only while somebody
 * waits. A lost session is replaced, and whoever waits is told to ask once more; until then polling goes on. Behind a pooler
 * in transaction mode it switches itself off.
 *
 * <pre>
 *   NONE ──first waiter──► OPENING ──► LISTENING ──nobody for a moment──► NONE
 *                            │ ▲          │
 *           pooler: OFF ◄────┘ └─back-off─┘ session lost
 * </pre>
 */
public final class NotifiedWakeUps implements WakeUps {

    private static final Logger log = LoggerFactory.getLogger(NotifiedWakeUps.class);

    /** A statement of ours waits behind a read. While things change, reads are short. */
    private static final Duration LONG_READ = Duration.ofMillis(50);

    private static final Duration SHORT_READ = Duration.ofMillis(5);
    private static final long BUSY_FOR = TimeUnit.SECONDS.toNanos(1);

    /** Who waits once often waits again. */
    private static final long LINGER = TimeUnit.SECONDS.toNanos(2);

    private static final long PROBE_EVERY = TimeUnit.SECONDS.toNanos(10);
    private static final long LEAST_BACK_OFF = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long GREATEST_BACK_OFF = TimeUnit.SECONDS.toNanos(5);
    private static final long LAST_WAIT_MILLIS = 500;

    /** One may have been ended at a bad moment. */
    private static final int SESSIONS_IN_VAIN = 2;

    private final SessionFactory sessions;

    /** Held for a few instructions only, never while anybody is spoken to. */
    private final ReentrantLock guard = new ReentrantLock();

    private final Condition changed = guard.newCondition();
    private final Map<Integer, Topic> topics = new HashMap<>();

    /** Used by the thread alone. */
    private final Outage outage = new Outage();

    private @Nullable Thread thread;
    private volatile boolean closed;
    private volatile boolean off;
    private volatile @Nullable ListenSession current;

    /** Those who wait by one wait key. Guarded. */
    private static final class Topic {

        private final Set<Waiter> waiters = new HashSet<>();
        private boolean announced;
    }

    /**
     * Creates the wake-ups of one replica. Opens nothing.
     *
     * @param sessions opens the session
     */
    public NotifiedWakeUps(SessionFactory sessions) {
        this.sessions = sessions;
    }

    @Override
    public boolean areOn() {
        return !off && !closed;
    }

    // ---- those who wait

    @Override
    public Watch watch(long key, Waiter waiter) {
        int waitKey = WakeUps.waitKey(key);
        boolean watched;
        guard.lock();
        try {
            if (!areOn()) {
                return () -> {};
            }
            Topic topic = topics.computeIfAbsent(waitKey, unknown -> new Topic());
            topic.waiters.add(waiter);
            watched = topic.announced;
            if (thread == null) {
                Thread listener = new Thread(this::run, "pglock-listen");
                listener.setDaemon(true);
                listener.start();
                thread = listener;
            }
            changed.signal();
        } finally {
            guard.unlock();
        }
        if (watched) {
            waiter.watched();
        }
        return () -> leave(waitKey, waiter);
    }

    private void leave(int waitKey, Waiter waiter) {
        guard.lock();
        try {
            Topic topic = topics.get(waitKey);
            if (topic != null && topic.waiters.remove(waiter) && topic.waiters.isEmpty()) {
                topics.remove(waitKey);
            }
        } finally {
            guard.unlock();
        }
    }

    private List<Waiter> waiters(int waitKey) {
        guard.lock();
        try {
            Topic topic = topics.get(waitKey);
            return topic == null ? List.of() : List.copyOf(topic.waiters);
        } finally {
            guard.unlock();
        }
    }

    // ---- the thread

    private void run() {
        try {
            while (isWanted()) {
                listen();
            }
        } finally {
            leave();
        }
    }

    private void listen() {
        try (ListenSession session = ListenSession.open(sessions)) {
            if (session == null) {
                switchOff();
                return;
            }
            outage.opened();
            current = session;
            serve(session);
        } catch (SQLException | RuntimeException e) {
            outage.goesOn(e, current == null);
            pause(outage.backOff());
        } finally {
            current = null;
            forgetAnnouncements();
        }
    }

    /** If not, this thread ends: the next waiter starts another. */
    private boolean isWanted() {
        guard.lock();
        try {
            boolean wanted = areOn() && !topics.isEmpty();
            if (!wanted) {
                thread = null;
            }
            return wanted;
        } finally {
            guard.unlock();
        }
    }

    /** However this thread ends. */
    private void leave() {
        guard.lock();
        try {
            if (thread == Thread.currentThread()) {
                thread = null;
            }
        } finally {
            guard.unlock();
        }
    }

    private void serve(ListenSession session) throws SQLException {
        Set<Integer> announced = new HashSet<>();
        long changedAt = System.nanoTime();
        long heardAt = changedAt;
        while (isWorkLeft(announced)) {
            if (announce(session, announced)) {
                changedAt = System.nanoTime();
                heardAt = changedAt;
            }
            boolean busy = System.nanoTime() - changedAt < BUSY_FOR;
            for (Integer waitKey : session.told(busy ? SHORT_READ : LONG_READ)) {
                heardAt = System.nanoTime();
                waiters(waitKey).forEach(Waiter::released);
            }
            if (System.nanoTime() - heardAt > PROBE_EVERY) {
                session.probe();
                heardAt = System.nanoTime();
            }
        }
    }

    /** Sleeps while nobody waits; false when nobody has for a while. */
    private boolean isWorkLeft(Set<Integer> announced) {
        guard.lock();
        try {
            long left = LINGER;
            while (areOn() && topics.isEmpty() && announced.isEmpty() && left > 0) {
                left = changed.awaitNanos(left);
            }
            return areOn() && !(topics.isEmpty() && announced.isEmpty());
        } catch (InterruptedException e) {
            log.debug("Nobody has a reason to interrupt this thread", e);
            return areOn();
        } finally {
            guard.unlock();
        }
    }

    /** Announces those who have come, and withdraws those who have gone; false: there were none. */
    private boolean announce(ListenSession session, Set<Integer> announced) throws SQLException {
        List<Integer> come = new ArrayList<>();
        List<Integer> gone;
        guard.lock();
        try {
            topics.forEach((waitKey, topic) -> {
                if (!topic.announced) {
                    come.add(waitKey);
                }
            });
            gone = announced.stream()
                    .filter(waitKey -> !topics.containsKey(waitKey))
                    .toList();
        } finally {
            guard.unlock();
        }
        for (Integer waitKey : come) {
            if (announced.contains(waitKey) || session.announce(waitKey)) {
                outage.isOver();
                announced.add(waitKey);
                announced(waitKey).forEach(Waiter::watched);
            }
        }
        for (Integer waitKey : gone) {
            session.withdraw(waitKey);
            announced.remove(waitKey);
        }
        return !come.isEmpty() || !gone.isEmpty();
    }

    private List<Waiter> announced(int waitKey) {
        guard.lock();
        try {
            Topic topic = topics.get(waitKey);
            if (topic == null) {
                return List.of();
            }
            topic.announced = true;
            return List.copyOf(topic.waiters);
        } finally {
            guard.unlock();
        }
    }

    private void forgetAnnouncements() {
        guard.lock();
        try {
            topics.values().forEach(topic -> topic.announced = false);
        } finally {
            guard.unlock();
        }
    }

    private void switchOff() {
        off = true;
        log.info("A connection pooler in transaction mode stands between this application and PostgreSQL, through which"
                + " nobody can listen: whoever waits for a lock polls, once a second in the end. With a direct URL"
                + " (pglock.datasource.url) a release wakes whoever waits");
    }

    private void pause(long nanos) {
        guard.lock();
        try {
            long left = nanos;
            while (!closed && left > 0) {
                left = changed.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            log.debug("Nobody has a reason to interrupt this thread", e);
        } finally {
            guard.unlock();
        }
    }

    /** Told once, however many attempts fail. One that can be opened, but not announce anybody, is none. */
    private final class Outage {

        private boolean told;
        private int failures;
        private int inVain;
        private boolean announces;
        private long openedAt;

        void opened() {
            openedAt = System.nanoTime();
            announces = false;
        }

        void goesOn(Exception e, boolean opening) {
            boolean lasted = !opening && System.nanoTime() - openedAt > PROBE_EVERY;
            failures = lasted ? 1 : failures + 1;
            inVain += opening || announces ? 0 : 1;
            if ((opening || inVain >= SESSIONS_IN_VAIN) && !told && !closed) {
                told = true;
                log.warn(
                        "Whoever waits for a lock polls until a session that listens can be {}: {}",
                        opening ? "opened" : "used",
                        e.getMessage());
            } else {
                log.debug("The session that listens {}", opening ? "cannot be opened" : "was lost", e);
            }
        }

        void isOver() {
            announces = true;
            inVain = 0;
            if (told) {
                told = false;
                log.info("Whoever waits for a lock is woken by its release again");
            }
        }

        long backOff() {
            long most = Math.min(GREATEST_BACK_OFF, LEAST_BACK_OFF << Math.min(failures, 6));
            return most / 2 + ThreadLocalRandom.current().nextLong(most / 2);
        }
    }

    @Override
    public void close() {
        Thread running;
        guard.lock();
        try {
            closed = true;
            running = thread;
            changed.signalAll();
        } finally {
            guard.unlock();
        }
        if (running == null) {
            return;
        }
        try {
            running.join(LAST_WAIT_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        ListenSession session = current;
        if (session != null) {
            session.abort();
        }
    }
}
