package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** When an outage is told to begin and to end: once each. */
class OutageToldOnceTests {

    private final List<String> told = new CopyOnWriteArrayList<>();

    private final LockListener listener = new LockListener() {
        @Override
        public void outageBegan(LockStrategy strategy, LockStorageException cause) {
            told.add("began");
        }

        @Override
        public void outageEnded(LockStrategy strategy, Duration lasted) {
            told.add("ended");
        }
    };

    private final Listeners listeners = new Listeners(List.of(listener));
    private final Outage outage = new Outage(LockStrategy.LEASE, listeners, () -> {});

    private void fail() {
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    throw new LockStorageException("cut off", null);
                }));
    }

    private void answer() {
        assertThat(outage.observe(() -> "answer")).isEqualTo("answer");
    }

    private void assertTold(String... events) {
        listeners.close(5_000);
        assertThat(told).containsExactly(events);
    }

    @Test
    void manyFailuresAreOneOutage() {
        answer();
        fail();
        fail();
        answer();
        answer();
        assertTold("began", "ended");
    }

    @Test
    void anAnswerToWhatWasAskedBeforeTheOutageDoesNotEndIt() {
        String late = outage.observe(() -> {
            fail();
            return "late";
        });
        assertThat(late).isEqualTo("late");
        assertThat(outage.lasting()).isNotNull();
        fail();
        answer();
        assertTold("began", "ended");
    }

    @Test
    void aFailureOfWhatWasAskedBeforeTheOutageEndedBeginsNoOther() {
        fail();
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    answer();
                    throw new LockStorageException("timed out on a connection that was cut off", null);
                }));
        assertThat(outage.lasting()).isNull();
        assertTold("began", "ended");
    }

    @Test
    void anAnswerThatWasSlowDoesNotHideTheOneToAYoungerQuestion() throws Exception {
        CountDownLatch slow = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(1);
        CompletableFuture<String> older = CompletableFuture.supplyAsync(
                () -> outage.observe(() -> {
                    asked.countDown();
                    try {
                        return slow.await(10, TimeUnit.SECONDS) ? "slow" : "never";
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }),
                task -> new Thread(task).start());
        assertThat(asked.await(10, TimeUnit.SECONDS)).isTrue();
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    answer();
                    slow.countDown();
                    assertThat(older.join()).isEqualTo("slow");
                    throw new LockStorageException("timed out on a connection that was cut off", null);
                }));

        assertThat(outage.lasting()).isNull();
        assertTold();
    }

    @Test
    void whatIsKnownWithoutAskingIsNoSignOfLife() {
        fail();
        assertThat(outage.observe(null, () -> false, answer -> answer)).isFalse();
        assertThat(outage.lasting()).isNotNull();
        assertTold("began");
    }

    private void failWith(String name, String state) {
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(new Outage.Question(name, "claimed"), () -> {
                    throw new LockStorageException("refused", new SQLException("as planned", state));
                }));
    }

    private void answerFor(String name) {
        assertThat(outage.observe(new Outage.Question(name, "claimed"), () -> "answer"))
                .isEqualTo("answer");
    }

    @ParameterizedTest
    @ValueSource(strings = {"22012", "23514", "P0001", "40001", "25P02"})
    void anErrorThatTheDatabaseHasForOneLockIsToldOnceForThatLockAndIsNoOutage(String state) {
        try (CapturedLog log = CapturedLog.of(Outage.class)) {
            for (int tick = 0; tick < 3; tick++) {
                failWith("poison", state);
                answerFor("other");
                answer();
            }
            assertThat(outage.lasting()).isNull();
            answerFor("poison");
            answerFor("poison");

            assertThat(log.messages())
                    .containsExactly(
                            "WARN Lock 'poison' cannot be claimed, although the database of the lease locks answers: refused:"
                                    + " as planned",
                            "INFO Lock 'poison' can be claimed again");
        }
        assertTold();
    }

    @ParameterizedTest
    @ValueSource(strings = {"42501", "55P03"})
    void anErrorOfOneLockThatMightBeThatOfAllIsAnOutageOnceAtMost(String state) {
        try (CapturedLog log = CapturedLog.of(Outage.class)) {
            for (int tick = 0; tick < 4; tick++) {
                failWith("poison", state);
                answerFor("other");
            }

            assertThat(log.messages())
                    .satisfiesExactly(
                            begin -> assertThat(begin).startsWith("WARN The database"),
                            end -> assertThat(end).startsWith("INFO The database"),
                            lock -> assertThat(lock).startsWith("WARN Lock 'poison' cannot be claimed"));
        }
        assertTold("began", "ended");
    }

    @Test
    void anErrorThatAllLocksHaveIsOneOutageAndLeavesNoneBehind() {
        try (CapturedLog log = CapturedLog.of(Outage.class)) {
            for (int tick = 0; tick < 2; tick++) {
                failWith("one", "42P01");
                failWith("two", "42P01");
            }
            answerFor("one");
            answerFor("two");

            assertThat(log.messages()).hasSize(2);
        }
        assertTold("began", "ended");
    }

    @ParameterizedTest
    @ValueSource(strings = {"08006", "57P01", "53300", "28P01", "25006", "XX000"})
    void whatConcernsTheSessionOrTheServerIsAnOutageWhoeverAsks(String state) {
        failWith("one", state);
        assertThat(outage.lasting()).isNotNull();
        answerFor("two");
        assertTold("began", "ended");
    }

    @Test
    void namesThatFailAreNotRememberedForEver() {
        try (CapturedLog log = CapturedLog.of(Outage.class)) {
            for (int i = 0; i < 1500; i++) {
                failWith("name " + i, "22012");
            }
            answerFor("name 0");
            answerFor("name 1499");
            assertThat(log.messages().stream().filter(line -> line.startsWith("INFO")))
                    .as("of the first nobody knows any more")
                    .hasSize(1);
        }
    }

    /** By a trigger: at a claim, which changes nothing else, and at a release, between claims that succeed. */
    @ParameterizedTest
    @CsvSource({"NEW.holder IS NOT NULL, claimed", "NEW.holder IS NULL, released"})
    void aLockThatATriggerRefusesIsToldOfOnceHoweverManyTicksThereAre(String when, String done) throws Exception {
        try (ReplicaStores stores = ReplicaStores.withTable();
                CapturedLog log = CapturedLog.of(Outage.class);
                LockEngine replica = LockEngine.builder(EngineSettings.defaults("outage", "A", LockStrategy.LEASE)
                                .withLease(Duration.ofSeconds(1), null))
                        .store(stores.lease(StoreIdentity.random("outage", "A")))
                        .listener(listener)
                        .build()) {
            stores.database().execute("""
                    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                      $$ BEGIN RAISE EXCEPTION 'refused by a trigger'; END $$;
                    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON pglock_lease
                      FOR EACH ROW WHEN (NEW.name = 'poison' AND %s) EXECUTE FUNCTION refuse()
                    """.formatted(when));
            for (int tick = 0; tick < 3; tick++) {
                tick(replica, "poison");
                tick(replica, "other");
            }

            assertThat(told).isEmpty();
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("WARN Lock 'poison' cannot be " + done)
                    .contains("refused by a trigger");

            stores.database().execute("DROP TRIGGER refuse ON pglock_lease");
            tick(replica, "poison");
            assertThat(log.messages()).hasSize(2).last().isEqualTo("INFO Lock 'poison' can be " + done + " again");
        }
    }

    /** A job of the night meets a restart, and nothing needs a lock until the next night. */
    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void anOutageThatNobodyAsksAboutEndsSoonAfterTheDatabaseIsBack(LockStrategy strategy) throws Exception {
        try (ReplicaStores stores = ReplicaStores.withTable();
                TcpProxy proxy = TcpProxy.to(stores.database().server());
                LockEngine replica = LockEngine.builder(
                                EngineSettings.defaults("outage", "A", strategy).withLease(ReplicaStores.LEASE, null))
                        .store(store(strategy, stores, proxy))
                        .listener(listener)
                        .build()) {
            proxy.refuse();
            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> replica.tryAcquire(LockRequest.of("nightly")));
            assertThat(replica.status().get(0).outage()).isNotNull();
            proxy.resume();

            await().atMost(Duration.ofSeconds(25))
                    .untilAsserted(() -> assertThat(told).containsExactly("began", "ended"));
            assertThat(replica.status().get(0).outage()).isNull();
            assertThat(stores.database().number("SELECT count(*) FROM pglock_lease"))
                    .isZero();
        }
    }

    private static LockStore store(LockStrategy strategy, ReplicaStores stores, TcpProxy proxy) {
        StoreIdentity identity = StoreIdentity.random("outage", "A");
        return strategy == LockStrategy.ADVISORY
                ? stores.store(identity, proxy)
                : stores.lease(identity, stores.database().url(proxy), ReplicaStores.LEASE, 2);
    }

    /** Waits for a lease of before to end. */
    private static void tick(LockEngine replica, String name) throws InterruptedException {
        try {
            replica.runBlocking(LockRequest.of(name).waitTimeout(Duration.ofSeconds(20)), () -> {});
        } catch (LockStorageException e) {
            assertThat(name).isEqualTo("poison");
        }
    }

    /** Its session has ended: that several locks are lost with it is known one after the other, without the database. */
    @Test
    void locksThatAreLostAndReleasedDuringAnOutageDoNotEndIt() throws Exception {
        String role = PostgresServer.shared().newRole();
        try (ReplicaStores stores = ReplicaStores.withoutTable().as(role);
                CapturedLog log = CapturedLog.of(Outage.class);
                LockEngine replica = LockEngine.builder(EngineSettings.defaults("outage", "A", LockStrategy.ADVISORY)
                                .withLease(ReplicaStores.LEASE, null))
                        .store(stores.store(StoreIdentity.random("outage", "A")))
                        .listener(listener)
                        .build()) {
            LockHandle first = replica.tryAcquire(LockRequest.of("first")).orElseThrow();
            LockHandle second = replica.tryAcquire(LockRequest.of("second")).orElseThrow();
            stores.database().execute("ALTER ROLE " + role + " CONNECTION LIMIT 0");
            assertThat(stores.database().terminate("pglock:%")).isPositive();

            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> replica.tryAcquire(LockRequest.of("third")));
            assertThat(first.release()).isFalse();
            await().until(() -> !second.isHeld());
            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> replica.tryAcquire(LockRequest.of("third")));
            stores.database().execute("ALTER ROLE " + role + " CONNECTION LIMIT -1");
            replica.tryAcquire(LockRequest.of("third")).orElseThrow().close();

            await().untilAsserted(() -> assertThat(told).containsExactly("began", "ended"));
            assertThat(log.messages())
                    .satisfiesExactly(
                            warning -> assertThat(warning).startsWith("WARN The database of the advisory locks fails"),
                            end -> assertThat(end).startsWith("INFO The database of the advisory locks works again"));
        }
    }
}
