package dev.pglock;

import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Makes one replica the leader of a role, for as long as it lives and reaches the database. A leader stays the leader while
 * nothing fails. Thread-safe.
 *
 * <pre>{@code
 * LeaderElection election = LeaderElection.of(registry, "billing");
 * election.addListener(listener);
 * election.start();
 * }</pre>
 *
 * <p>A role is a lock, by default of the name {@code leader:} + role, of whatever strategy. Two replicas never lead at the same
 * time, as long as the lock is not released by force and the listeners' {@code revoked} end in time: before the lock is given
 * up, or, where it cannot be renewed, within the quarter of the lease that is kept for them. An advisory lock is free for
 * others as soon as its session has ended, known to its holder or not. So who is granted one waits for the length of a lease
 * before it leads, unless the former leader is there to tell that it has stepped down.
 *
 * <p>What only a leader may do outside of the database should carry {@link #fence()}, as with every lock.
 */
public final class LeaderElection implements AutoCloseable {

    /** The greatest length of the name of a role's lock: with room for what is added for the locks beside it. */
    public static final int MAX_NAME_LENGTH =
            LockNames.MAX_LENGTH - LeaderLock.markOf("").length();

    private static final Duration DEFAULT_GRACE = Duration.ofSeconds(10);

    private final LockRegistry registry;
    private final String role;
    private final LockRequest request;
    private final List<LeaderListener> listeners = new CopyOnWriteArrayList<>();

    private final ReentrantLock guard = new ReentrantLock();
    private volatile @Nullable Candidacy candidacy;

    private LeaderElection(LockRegistry registry, String role, LockRequest request) {
        this.registry = registry;
        this.role = role;
        this.request = request;
    }

    /**
     * An election for a role whose lock has the registry's defaults. It does nothing before {@link #start()}.
     *
     * @param registry takes the lock
     * @param role the same on all replicas
     * @return the election
     */
    public static LeaderElection of(LockRegistry registry, String role) {
        return of(registry, role, LockRequest.of("leader:" + role));
    }

    /**
     * An election for a role whose lock is asked for in that way. It does nothing before {@link #start()}.
     *
     * @param registry takes the lock
     * @param role the same on all replicas
     * @param request name, strategy and lease duration of the lock. How long to wait for it, and what happens on its loss, is
     *     the election's affair; with a {@code maxHold} a term is as long as that at most
     * @return the election
     * @throws IllegalArgumentException if the request has a version: who leads once for ever is no leader. If the name has
     *     more than {@link #MAX_NAME_LENGTH} characters: {@code /mark} and {@code /seen} are added for the locks by which a leader by an advisory
     *     lock and the next one speak to each other
     */
    public static LeaderElection of(LockRegistry registry, String role, LockRequest request) {
        if (request.name().length() > MAX_NAME_LENGTH) {
            throw new IllegalArgumentException("The name of the lock of the role '" + role + "' must have at most "
                    + MAX_NAME_LENGTH + " characters, but has "
                    + request.name().length());
        }
        if (request.version() != null) {
            throw new IllegalArgumentException("The lock of the role '" + role + "' must not have a version");
        }
        LockRequest whole = request.waitTimeout(LockRequest.UNLIMITED).onLost(OnLost.CONTINUE);
        return new LeaderElection(
                registry, role, request.maxHold() == null ? whole.maxHold(LockRequest.GREATEST_DURATION) : whole);
    }

    /**
     * Adds somebody who is told of this replica's terms, from the next one on. Listeners are told of a grant in their order,
     * and of the end in the reverse.
     *
     * @param listener the listener
     * @return this
     */
    public LeaderElection addListener(LeaderListener listener) {
        listeners.add(listener);
        return this;
    }

    /**
     * The role.
     *
     * @return its name
     */
    public String role() {
        return role;
    }

    /** Stands for election from now on, on a thread of its own. Returns at once; does nothing if it does so already. */
    public void start() {
        guard.lock();
        try {
            if (candidacy == null) {
                Candidacy started = new Candidacy(registry, role, request, listeners);
                candidacy = started;
                started.start();
            }
        } finally {
            guard.unlock();
        }
    }

    /**
     * Whether this replica stands for election.
     *
     * @return true between {@link #start()} and {@link #stop()}, whoever leads
     */
    public boolean isRunning() {
        return candidacy != null;
    }

    /**
     * Whether this replica leads at this moment. Reads memory only.
     *
     * @return true from before {@link LeaderListener#granted} is called until before {@link LeaderListener#revoked} is
     */
    public boolean isLeader() {
        return activeTerm() != null;
    }

    /**
     * The epoch of this replica's leadership: strictly greater than that of every earlier leader. Reads memory only.
     *
     * @return the fence; empty while this replica does not lead
     */
    public OptionalLong fence() {
        LeaderTerm term = activeTerm();
        return term == null ? OptionalLong.empty() : OptionalLong.of(term.fence());
    }

    private @Nullable LeaderTerm activeTerm() {
        Candidacy now = candidacy;
        LeaderTerm term = now == null ? null : now.term();
        return term != null && term.isActive() ? term : null;
    }

    /**
     * Steps down: this replica leads no more when the method returns; the lock is released when the listeners have been told.
     * It stands for election again after some seconds, so that another replica is first. Returns at once, so that a listener
     * may call it.
     *
     * @return false if this replica did not lead
     */
    public boolean resign() {
        Candidacy now = candidacy;
        return now != null && now.resign();
    }

    /** Steps down and stands for election no more, like {@link #stop(Duration)} with ten seconds. */
    public void stop() {
        boolean ignored = stop(DEFAULT_GRACE);
    }

    /**
     * Steps down and stands for election no more. Blocks until the listeners have been told and the lock is released, but no
     * longer than that: a listener that goes on keeps the lock until it has ended. Called by a listener, it does not wait.
     * {@link #start()} works again afterwards.
     *
     * @param grace how long to wait at most; {@link LockRequest#UNLIMITED} waits until they have ended
     * @return whether this replica's leadership, if there was one, is over and its lock released
     */
    public boolean stop(Duration grace) {
        Candidacy stopped;
        guard.lock();
        try {
            stopped = candidacy;
            candidacy = null;
        } finally {
            guard.unlock();
        }
        return stopped == null || stopped.stop(grace);
    }

    /** Stops, like {@link #stop()}. */
    @Override
    public void close() {
        stop();
    }

    @Override
    public String toString() {
        return "LeaderElection[" + role + (isLeader() ? ", leads" : isRunning() ? ", follows" : ", stopped") + "]";
    }
}
