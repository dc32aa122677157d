package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LeaderElection;
import dev.pglock.LeaderListener;
import dev.pglock.LeaderTerm;
import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.store.LockStore;
import dev.pglock.store.WakeUps;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Replicas that stand for election to one role, and what became of it. */
final class Electorate implements AutoCloseable {

    static final Duration LEASE = Duration.ofSeconds(2);
    static final Duration HEARTBEAT = Duration.ofMillis(300);

    final String namespace = "election-" + UUID.randomUUID();
    final String role = "role-" + UUID.randomUUID();
    final List<Replica> replicas = new CopyOnWriteArrayList<>();
    final List<Term> terms = new CopyOnWriteArrayList<>();
    final List<String> overlaps = new CopyOnWriteArrayList<>();
    final AtomicInteger outages = new AtomicInteger();

    /** What configuration says of the locks of those who join from now on. */
    UnaryOperator<LockRequest> overrides = UnaryOperator.identity();

    private final Thread sampler = new Thread(this::sample, "sampler");
    private volatile boolean closed;

    Electorate() {
        sampler.setDaemon(true);
        sampler.start();
    }

    /** One term as its listener saw it. */
    static final class Term {

        final Replica replica;
        final long fence;
        final long grantedAt = System.nanoTime();
        volatile long revokedAt;
        volatile long revokedEnd;

        Term(Replica replica, long fence) {
            this.replica = replica;
            this.fence = fence;
        }

        @Override
        public String toString() {
            return replica.label + " " + fence + " from " + grantedAt + " to " + revokedAt + " / " + revokedEnd;
        }
    }

    final class Replica implements LeaderListener {

        final String label;
        final FaultyStore store;
        final LockEngine engine;
        final LeaderElection election;
        volatile Duration revokedTakes = Duration.ZERO;
        volatile @Nullable Predicate<LeaderTerm> onGranted;

        Replica(String label, LockStore store, WakeUps wakeUps) {
            this.label = label;
            this.store = new FaultyStore(store);
            this.engine = LockEngine.builder(EngineSettings.defaults(namespace, label, store.strategy())
                            .withLease(LEASE, HEARTBEAT))
                    .store(this.store)
                    .wakeUps(wakeUps)
                    .overrides(overrides)
                    .listener(new LockListener() {
                        @Override
                        public void outageBegan(LockStrategy strategy, LockStorageException cause) {
                            outages.incrementAndGet();
                        }
                    })
                    .build();
            this.election = LeaderElection.of(engine, role).addListener(this);
        }

        @Override
        public void granted(LeaderTerm term) {
            terms.add(new Term(this, term.fence()));
            Predicate<LeaderTerm> then = onGranted;
            if (then != null && !then.test(term)) {
                throw new IllegalStateException("a listener that fails");
            }
        }

        @Override
        public void revoked(LeaderTerm term) throws InterruptedException {
            assertThat(term.isActive()).isFalse();
            Term own = terms.stream()
                    .filter(t -> t.fence == term.fence())
                    .findFirst()
                    .orElseThrow();
            own.revokedAt = System.nanoTime();
            Thread.sleep(revokedTakes.toMillis());
            own.revokedEnd = System.nanoTime();
        }

        void databaseIsAway(boolean away) {
            store.failClaims = away;
            store.failRenewals = away;
            store.failReleases = away;
        }

        boolean leads() {
            return election.isLeader();
        }

        /** Between {@code isLeader} and the listener there is a moment. */
        boolean leadsAndWasTold() {
            OptionalLong fence = election.fence();
            return fence.isPresent() && terms.stream().anyMatch(term -> term.fence == fence.getAsLong());
        }
    }

    Replica join(String label, LockStore store, WakeUps wakeUps) {
        Replica replica = new Replica(label, store, wakeUps);
        replicas.add(replica);
        return replica;
    }

    @Nullable
    Replica leader() {
        return replicas.stream().filter(Replica::leadsAndWasTold).findFirst().orElse(null);
    }

    Replica awaitLeader() {
        return await().atMost(Duration.ofSeconds(20))
                .pollInterval(Duration.ofMillis(5))
                .until(this::leader, leader -> leader != null);
    }

    Replica awaitLeaderOtherThan(Replica former) {
        return await().atMost(Duration.ofSeconds(20))
                .pollInterval(Duration.ofMillis(5))
                .until(this::leader, leader -> leader != null && leader != former);
    }

    Replica other(Replica one) {
        return replicas.stream().filter(r -> r != one).findFirst().orElseThrow();
    }

    /** Never two at a time, epochs that increase, and every revocation ended before the next grant. */
    void check() {
        assertThat(overlaps).isEmpty();
        List<Term> ordered = new ArrayList<>(terms);
        ordered.sort(Comparator.comparingLong(term -> term.grantedAt));
        for (int i = 1; i < ordered.size(); i++) {
            Term before = ordered.get(i - 1);
            Term after = ordered.get(i);
            assertThat(after.fence).as(ordered.toString()).isGreaterThan(before.fence);
            assertThat(before.revokedEnd).as(ordered.toString()).isNotZero().isLessThan(after.grantedAt);
        }
    }

    /** The same term is seen before and after another's: that was no hand-over in between. */
    private void sample() {
        while (!closed) {
            for (Replica one : replicas) {
                OptionalLong before = one.election.fence();
                for (Replica other : replicas) {
                    OptionalLong others = other == one ? OptionalLong.empty() : other.election.fence();
                    if (before.isPresent()
                            && others.isPresent()
                            && one.election.fence().equals(before)) {
                        overlaps.add(one.label + " " + before + " and " + other.label + " " + others);
                    }
                }
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    @Override
    public void close() {
        replicas.forEach(replica -> replica.databaseIsAway(false));
        replicas.forEach(replica -> replica.election.close());
        closed = true;
        replicas.forEach(replica -> replica.engine.close());
    }
}
