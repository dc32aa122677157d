package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

import dev.pglock.LeaderElection;
import dev.pglock.LeaderListener;
import dev.pglock.LeaderTerm;
import dev.pglock.LockInfo;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.engine.Electorate.Replica;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What an election promises, whatever keeps its lock. Leases last two seconds and are renewed every 300 ms. */
@Execution(ExecutionMode.CONCURRENT)
abstract class LeaderElectionContract {

    final Electorate electorate = new Electorate();

    abstract LockStore newStore(StoreIdentity identity);

    WakeUps newWakeUps(String label) {
        return WakeUps.NONE;
    }

    @AfterEach
    void closeAndCheck() {
        electorate.close();
        electorate.check();
    }

    Replica join(String label) {
        return electorate.join(label, newStore(StoreIdentity.random(electorate.namespace, label)), newWakeUps(label));
    }

    Replica started(String label) {
        Replica replica = join(label);
        replica.election.start();
        return replica;
    }

    /** A leader and one who follows. */
    Replica leaderOfTwo() {
        started("A");
        started("B");
        return electorate.awaitLeader();
    }

    @Test
    void aLeaderStaysTheLeaderWhileNothingFails() {
        leaderOfTwo();
        started("C");
        await().during(Duration.ofSeconds(5))
                .atMost(Duration.ofSeconds(8))
                .pollInterval(Duration.ofMillis(10))
                .until(() -> electorate.leader() != null);
        assertThat(electorate.terms).hasSize(1);
        assertThat(electorate.terms.get(0).fence)
                .isEqualTo(electorate.awaitLeader().election.fence().orElseThrow());
    }

    @Test
    void aStopTellsTheListenersToTheEndBeforeAnybodyElseIsGranted() {
        Replica leader = leaderOfTwo();
        leader.revokedTakes = Duration.ofMillis(700);
        assertThat(leader.election.stop(Duration.ofSeconds(10))).isTrue();
        assertThat(leader.leads()).isFalse();
        assertThat(leader.election.isRunning()).isFalse();
        assertThat(electorate.terms.get(0).revokedEnd).isNotZero();
        long stopped = System.nanoTime();
        assertThat(electorate.awaitLeader()).isNotSameAs(leader);
        assertThat(Duration.ofNanos(System.nanoTime() - stopped)).isLessThan(Duration.ofSeconds(3));
    }

    @Test
    void whoResignsLetsAnotherLeadAndIsTheNext() {
        Replica leader = leaderOfTwo();
        assertThat(electorate.other(leader).election.resign()).isFalse();
        assertThat(leader.election.resign()).isTrue();
        assertThat(leader.leads()).isFalse();
        assertThat(leader.election.fence()).isEmpty();
        assertThat(leader.election.resign()).isFalse();
        Replica next = electorate.awaitLeader();
        assertThat(next).isNotSameAs(leader);
        await().during(Duration.ofSeconds(4)).atMost(Duration.ofSeconds(6)).until(next::leads);
        next.election.stop();
        assertThat(electorate.awaitLeader()).isSameAs(leader);
        await().until(() -> electorate.terms.size() == 3);
    }

    @Test
    void aSingleReplicaThatResignsLeadsAgain() {
        Replica only = started("A");
        electorate.awaitLeader();
        assertThat(only.election.resign()).isTrue();
        assertThat(only.leads()).isFalse();
        assertThat(electorate.awaitLeader()).isSameAs(only);
    }

    @Test
    void aLeaderThatCannotRenewHasToldItsListenersBeforeAnotherLeads() {
        Replica leader = leaderOfTwo();
        leader.revokedTakes = Electorate.LEASE.dividedBy(8);
        long away = System.nanoTime();
        leader.databaseIsAway(true);
        Replica next = electorate.awaitLeaderOtherThan(leader);
        assertThat(Duration.ofNanos(System.nanoTime() - away))
                .isLessThan(Electorate.LEASE.multipliedBy(2).plusSeconds(6));
        leader.databaseIsAway(false);
        assertThat(next.leads()).isTrue();
        electorate.check();
    }

    @Test
    void afterAnOutageOfAllThereIsALeaderWithinALeaseAndABackOff() {
        Replica leader = leaderOfTwo();
        electorate.replicas.forEach(replica -> replica.databaseIsAway(true));
        await().atMost(Electorate.LEASE.plusSeconds(1)).until(() -> !leader.leads());
        int claims =
                electorate.replicas.stream().mapToInt(r -> r.store.claims.get()).sum();
        await().during(Duration.ofSeconds(3)).atMost(Duration.ofSeconds(4)).until(() -> electorate.leader() == null);
        int more =
                electorate.replicas.stream().mapToInt(r -> r.store.claims.get()).sum() - claims;
        assertThat(more).as("claims of two replicas in three seconds").isBetween(2, 24);
        assertThat(electorate.outages).as("told once by each").hasValue(2);
        long back = System.nanoTime();
        electorate.replicas.forEach(replica -> replica.databaseIsAway(false));
        electorate.awaitLeader();
        assertThat(Duration.ofNanos(System.nanoTime() - back)).isLessThan(Electorate.LEASE.plusSeconds(6));
    }

    @Test
    void aShortOutageChangesNothing() {
        Replica leader = leaderOfTwo();
        electorate.replicas.forEach(replica -> replica.databaseIsAway(true));
        int before = leader.store.renewStatements.get();
        await().until(() -> leader.store.renewStatements.get() >= before + 2);
        electorate.replicas.forEach(replica -> replica.databaseIsAway(false));
        await().during(Duration.ofSeconds(2)).atMost(Duration.ofSeconds(4)).until(leader::leads);
        assertThat(electorate.terms).hasSize(1);
    }

    @Test
    void aListenerThatFailsGivesTheLeadershipUp() {
        Replica a = join("A");
        a.onGranted = term -> false;
        a.election.start();
        await().atMost(Duration.ofSeconds(10)).until(() -> electorate.terms.size() == 1 && !a.leads());
        Replica b = started("B");
        electorate.awaitLeaderOtherThan(a);
        a.onGranted = null;
        b.election.stop();
        assertThat(electorate.awaitLeader()).isSameAs(a);
    }

    @Test
    void aListenerThatAlwaysFailsIsTriedMoreAndMoreSeldom() {
        Replica a = join("A");
        a.onGranted = term -> false;
        a.election.start();
        await().during(Duration.ofSeconds(6)).atMost(Duration.ofSeconds(8)).until(() -> electorate.terms.size() <= 6);
        await().atMost(Duration.ofSeconds(20)).until(() -> electorate.terms.size() >= 2);
    }

    @Test
    void listenersAreToldInOrderAndOfTheEndInTheReverseAndOnlyThoseWhoWereTold() {
        List<String> events = new CopyOnWriteArrayList<>();
        Replica a = join("A");
        LeaderElection election = LeaderElection.of(a.engine, "other");
        class Named implements LeaderListener {
            private final String name;
            private final boolean fails;

            Named(String name, boolean fails) {
                this.name = name;
                this.fails = fails;
            }

            @Override
            public void granted(LeaderTerm term) {
                events.add("+" + name);
                if (fails) {
                    throw new NoClassDefFoundError("of " + name);
                }
            }

            @Override
            public void revoked(LeaderTerm term) {
                events.add("-" + name);
                throw new NoClassDefFoundError("of " + name);
            }
        }
        election.addListener(new Named("1", false))
                .addListener(new Named("2", true))
                .addListener(new Named("3", false));
        election.start();
        await().atMost(Duration.ofSeconds(10)).until(() -> events.size() >= 4);
        election.stop();
        assertThat(events.subList(0, 4)).containsExactly("+1", "+2", "-2", "-1");
    }

    @Test
    void aListenerMayWorkForAsLongAsItLeadsAndIsInterruptedOnce() throws Exception {
        AtomicInteger interrupts = new AtomicInteger();
        CompletableFuture<Thread> working = new CompletableFuture<>();
        Replica a = join("A");
        a.onGranted = term -> {
            working.complete(Thread.currentThread());
            while (term.isActive()) {
                try {
                    Thread.sleep(60_000);
                } catch (InterruptedException e) {
                    interrupts.incrementAndGet();
                }
            }
            return true;
        };
        a.revokedTakes = Duration.ofMillis(200);
        a.election.start();
        Thread worker = working.get(10, TimeUnit.SECONDS);
        await().until(() -> worker.getState() == Thread.State.TIMED_WAITING);
        assertThat(a.leads()).isTrue();
        assertThat(a.election.stop(Duration.ofSeconds(5))).isTrue();
        assertThat(interrupts).hasValue(1);
        assertThat(electorate.terms.get(0).revokedEnd)
                .as("not interrupted itself")
                .isNotZero();
    }

    @Test
    void aListenerThatNeverEndsKeepsTheLockAndAStopIsBoundedAllTheSame() throws Exception {
        Replica leader = leaderOfTwo();
        leader.revokedTakes = Duration.ofSeconds(4);
        long began = System.nanoTime();
        assertThat(leader.election.stop(Duration.ofMillis(500))).isFalse();
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(3));
        await().during(Duration.ofMillis(2500)).atMost(Duration.ofSeconds(4)).until(() -> electorate.leader() == null);
        assertThat(electorate.awaitLeader()).isNotSameAs(leader);
    }

    @Test
    void aStopMayWaitForEver() {
        Replica leader = leaderOfTwo();
        leader.revokedTakes = Duration.ofMillis(300);
        assertThat(leader.election.stop(LockRequest.UNLIMITED)).isTrue();
        assertThat(electorate.terms.get(0).revokedEnd).isNotZero();
        assertThat(electorate.awaitLeader()).isNotSameAs(leader);
    }

    @Test
    void aFollowerThatMayNotWaitAsksFewTimesASecond() {
        electorate.overrides = request -> request.waitTimeout(Duration.ZERO);
        Replica leader = leaderOfTwo();
        AtomicInteger claims = electorate.other(leader).store.claims;
        await().atMost(Duration.ofSeconds(5)).until(() -> claims.get() >= 2);
        int before = claims.get();
        await().during(Duration.ofSeconds(3)).atMost(Duration.ofSeconds(6)).until(() -> claims.get() - before < 30);
        assertThat(claims).as("and it does ask").hasValueGreaterThan(before);
        leader.election.stop();
        assertThat(electorate.awaitLeader()).isNotSameAs(leader);
    }

    /** What fails when it is told, as if there were no memory left for it. */
    private static final class Untellable extends IllegalStateException {

        private static final long serialVersionUID = 1L;

        @Override
        public String getMessage() {
            throw new IllegalStateException("cannot be told");
        }
    }

    @Test
    void whatCannotEvenBeToldEndsNoCandidacyAndIsKeptFromNoListener() {
        Replica a = join("A");
        AtomicInteger asked = new AtomicInteger();
        LockRegistry failing = (LockRegistry) Proxy.newProxyInstance(
                LockRegistry.class.getClassLoader(),
                new Class<?>[] {LockRegistry.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("acquire") && asked.incrementAndGet() == 1) {
                        throw new Untellable();
                    }
                    try {
                        return method.invoke(a.engine, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getTargetException();
                    }
                });
        List<String> events = new CopyOnWriteArrayList<>();
        class Failing implements LeaderListener {
            @Override
            public void granted(LeaderTerm term) {
                events.add("+");
                throw new Untellable();
            }

            @Override
            public void revoked(LeaderTerm term) {
                events.add("-");
                throw new Untellable();
            }
        }
        class Calm implements LeaderListener {
            @Override
            public void granted(LeaderTerm term) {
                events.add("+ calm");
            }

            @Override
            public void revoked(LeaderTerm term) {
                events.add("- calm");
            }
        }
        try (LeaderElection election = LeaderElection.of(failing, electorate.role)
                .addListener(new Calm())
                .addListener(new Failing())) {
            election.start();
            await().atMost(Duration.ofSeconds(15)).until(() -> events.size() >= 5);
            assertThat(events.subList(0, 5)).containsExactly("+ calm", "+", "-", "- calm", "+ calm");
        }
    }

    @Test
    void aListenerMayStopAndResignItsOwnElection() {
        Replica a = join("A");
        a.onGranted = term -> {
            assertThat(a.election.stop(Duration.ofSeconds(30))).isFalse();
            return true;
        };
        a.election.start();
        await().atMost(Duration.ofSeconds(10)).until(() -> !a.election.isRunning());
        await().atMost(Duration.ofSeconds(10))
                .until(() -> a.engine.find("leader:" + electorate.role).stream()
                        .allMatch(info -> info.state() == LockState.FREE));
    }

    @Test
    void anElectionIsStoppedAndStartedAgain() {
        Replica a = started("A");
        for (int i = 1; i <= 3; i++) {
            electorate.awaitLeader();
            a.election.stop();
            a.election.stop();
            assertThat(a.leads()).isFalse();
            assertThat(electorate.terms).hasSize(i);
            a.election.start();
            a.election.start();
        }
        electorate.awaitLeader();
        assertThat(electorate.terms).hasSize(4);
        assertThat(Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().equals("pglock-elects-" + electorate.role)))
                .hasSize(1);
    }

    /** By several threads at once, and by listeners, with whatever is under way. */
    @Test
    void whateverStartsStopsAndResignsThereAreNeverTwoAndNothingIsLeft() throws Exception {
        List<Replica> all = List.of(join("A"), join("B"));
        for (Replica replica : all) {
            replica.revokedTakes = Duration.ofMillis(5);
            replica.onGranted = term -> {
                switch (ThreadLocalRandom.current().nextInt(6)) {
                    case 0 -> replica.election.close();
                    case 1 -> {
                        replica.election.stop();
                        replica.election.start();
                    }
                    case 2 -> assertThat(replica.election.resign()).isIn(true, false);
                    default -> {}
                }
                return ThreadLocalRandom.current().nextInt(10) > 0;
            };
        }
        long until = System.nanoTime() + Duration.ofSeconds(6).toNanos();
        List<Thread> meddlers = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            LeaderElection election = all.get(i % 2).election;
            Thread meddler = new Thread(() -> {
                while (System.nanoTime() < until) {
                    switch (ThreadLocalRandom.current().nextInt(8)) {
                        case 0 -> election.stop();
                        case 1 -> election.resign();
                        default -> election.start();
                    }
                    LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(300_000_000));
                }
            });
            meddlers.add(meddler);
            meddler.start();
        }
        for (Thread meddler : meddlers) {
            meddler.join();
        }
        all.forEach(replica -> replica.election.stop());
        await().atMost(Duration.ofSeconds(15))
                .until(() -> all.get(0).engine.findAll().stream().noneMatch(info -> info.state() == LockState.HELD));
        for (Replica replica : all) {
            await().atMost(Duration.ofSeconds(5)).until(() -> replica.engine.stop(Duration.ZERO));
            replica.engine.start();
            replica.onGranted = null;
        }
        all.get(0).election.start();
        electorate.awaitLeader();
    }

    @Test
    void aStopOfOneThatNeverLedIsQuickAndLeavesNothing() {
        Replica leader = leaderOfTwo();
        Replica follower = electorate.other(leader);
        long began = System.nanoTime();
        assertThat(follower.election.stop(Duration.ofSeconds(10))).isTrue();
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(3));
        leader.election.stop();
        await().during(Duration.ofSeconds(1)).atMost(Duration.ofSeconds(2)).until(() -> electorate.leader() == null);
        assertThat(leader.engine.findAll().stream().map(LockInfo::state)).doesNotContain(LockState.HELD);
        await().atMost(Duration.ofSeconds(5))
                .until(() -> Thread.getAllStackTraces().keySet().stream()
                        .map(Thread::getName)
                        .noneMatch(name -> name.startsWith("pglock-") && name.endsWith(electorate.role)));
    }

    @Test
    void aRegistryThatStopsIsWaitedFor() {
        Replica a = started("A");
        electorate.awaitLeader();
        a.election.stop();
        a.engine.stop(Duration.ofSeconds(1));
        a.election.start();
        await().during(Duration.ofSeconds(1)).atMost(Duration.ofSeconds(2)).until(() -> !a.leads());
        a.engine.start();
        electorate.awaitLeader();
    }

    @Test
    void whatWouldBeNoElectionIsRefused() {
        Replica a = join("A");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        LeaderElection.of(a.engine, "role", LockRequest.of("n").version("1")))
                .withMessageContaining("role");
        assertThatIllegalArgumentException().isThrownBy(() -> LeaderElection.of(a.engine, "x".repeat(248)));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LeaderElection.of(a.engine, "role", LockRequest.of("x".repeat(251))))
                .withMessageContaining("role")
                .withMessageContaining("250");
    }

    @Test
    void aTermMayBeLimitedByMaxHold() {
        Replica a = join("A");
        AtomicInteger granted = new AtomicInteger();
        try (LeaderElection election =
                LeaderElection.of(a.engine, "short", LockRequest.of("short").maxHold(Duration.ofSeconds(4)))) {
            election.addListener(new LeaderListener() {
                @Override
                public void granted(LeaderTerm term) {
                    granted.incrementAndGet();
                }
            });
            election.start();
            await().atMost(Duration.ofSeconds(25)).until(() -> granted.get() >= 2);
        }
    }
}
