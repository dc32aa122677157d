package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.engine.Electorate.Replica;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What an election promises besides where a database, and a way to it, can fail. */
abstract class DatabaseElectionContract extends LeaderElectionContract {

    final Map<String, TcpProxy> wires = new HashMap<>();
    boolean onWires;

    /** Of the class: others run at the same time. */
    abstract ReplicaStores stores();

    abstract LockStore newStore(StoreIdentity identity, String url);

    @Override
    LockStore newStore(StoreIdentity identity) {
        String url = onWires
                ? stores().database()
                        .url(wires.computeIfAbsent(
                                identity.label(),
                                key -> TcpProxy.to(stores().database().server())))
                : stores().database().url();
        return newStore(identity, url);
    }

    @Override
    WakeUps newWakeUps(String label) {
        return new NotifiedWakeUps(stores().sessions(
                        StoreIdentity.random(electorate.namespace, label + "-listens"),
                        stores().database().url(),
                        Electorate.LEASE));
    }

    @AfterEach
    void closeWires() {
        wires.values().forEach(TcpProxy::close);
    }

    @Test
    void aRoleIsHandedOverInMilliseconds() {
        leaderOfTwo();
        List<Long> millis = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            Replica leader = electorate.awaitLeader();
            Replica next = electorate.other(leader);
            awaitWaiter(next);
            int terms = electorate.terms.size();
            if (i % 2 == 0) {
                leader.election.stop();
            } else {
                assertThat(leader.election.resign()).isTrue();
            }
            await().pollInterval(Duration.ofMillis(1)).until(() -> electorate.terms.size() > terms);
            millis.add(
                    (electorate.terms.get(terms).grantedAt - electorate.terms.get(terms - 1).revokedEnd) / 1_000_000);
            if (i % 2 == 0) {
                leader.election.start();
            }
        }
        Collections.sort(millis);
        System.out.println(getClass().getSimpleName() + ": roles were handed over in " + millis + " ms");
        // Who is not told asks again after a second.
        assertThat(millis.get(5)).as(millis.toString()).isLessThan(800);
    }

    private void awaitWaiter(Replica next) {
        int waitKey = WakeUps.waitKey(KeyDerivation.SHA256.key(electorate.namespace, "leader:" + electorate.role));
        await().atMost(Duration.ofSeconds(10))
                .pollInterval(Duration.ofMillis(5))
                .until(() -> stores().database()
                                .number("""
                        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
                        WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND objid = ?::int::oid
                          AND application_name = ?
                        """, waitKey, "pglock:" + electorate.namespace + ":" + next.label + "-listens")
                        == 1);
    }

    @Test
    void whoseSessionsAreTerminatedTenTimesNeverLeadsBesideAnother() {
        leaderOfTwo();
        for (int i = 0; i < 10; i++) {
            Replica leader = electorate.awaitLeader();
            await().atMost(Duration.ofSeconds(10))
                    .until(() ->
                            stores().database().terminate("pglock:" + electorate.namespace + ":" + leader.label) > 0);
            await().during(Duration.ofMillis(500)).atMost(Duration.ofSeconds(2)).until(() -> true);
        }
        electorate.awaitLeader();
        electorate.close();
        electorate.check();
    }

    @Test
    void allSessionsAreTerminatedAndThereIsALeaderAgain() {
        leaderOfTwo();
        for (int i = 0; i < 3; i++) {
            electorate.awaitLeader();
            stores().database().terminate("pglock:" + electorate.namespace + ":%");
            long terminated = System.nanoTime();
            await().during(Duration.ofMillis(700)).atMost(Duration.ofSeconds(2)).until(() -> true);
            electorate.awaitLeader();
            assertThat(Duration.ofNanos(System.nanoTime() - terminated)).isLessThan(Electorate.LEASE.plusSeconds(6));
        }
    }

    @Test
    void aLeaderThatIsCutOffHasToldItsListenersBeforeAnotherLeadsAndItsStopIsBounded() {
        onWires = true;
        Replica leader = leaderOfTwo();
        leader.revokedTakes = Electorate.LEASE.dividedBy(4);
        wires.get(leader.label).stall();
        electorate.awaitLeaderOtherThan(leader);
        electorate.check();
        long began = System.nanoTime();
        leader.election.stop(Duration.ofSeconds(5));
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(8));
        wires.get(leader.label).resume();
    }

    @Test
    void aLeaderThatStopsWhileTheDatabaseIsAwayTellsItsListenersAndEndsInTime() {
        onWires = true;
        Replica leader = leaderOfTwo();
        wires.values().forEach(TcpProxy::stall);
        long began = System.nanoTime();
        leader.election.stop(Duration.ofSeconds(5));
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(8));
        assertThat(electorate.terms.get(0).revokedEnd).isNotZero();
        wires.values().forEach(TcpProxy::resume);
        assertThat(electorate.awaitLeader()).isNotSameAs(leader);
    }
}
