package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What every store promises about ticks. Two stores over one storage are two replicas. */
public abstract class TickContract {

    private static final Duration LEASE = Duration.ofSeconds(2);
    private static final Duration GAP = Duration.ofMinutes(10);

    /** A fire time. */
    private static final Instant START = Instant.now().minusSeconds(30);

    private final String namespace = "ticks-" + UUID.randomUUID();
    private final List<LockStore> stores = new ArrayList<>();
    protected LockStore a;
    protected LockStore b;

    /** Another replica's store over the same storage. */
    protected abstract LockStore newStore(StoreIdentity identity);

    @BeforeEach
    void startTwoReplicas() {
        a = store("A");
        b = store("B");
    }

    @AfterEach
    void stopThem() {
        stores.forEach(LockStore::close);
    }

    private LockStore store(String label) {
        LockStore store = newStore(StoreIdentity.random(namespace, label));
        stores.add(store);
        return store;
    }

    // ---- fire times

    @Test
    void aTickRunsOnceHoweverShortItsRun() {
        Tick tick = calendar(0, 0);
        run(a, tick);

        assertThat(denied(b, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
        assertThat(denied(a, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
        run(b, calendar(0, 1));
        assertThat(denied(a, calendar(0, 1)).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void aTickIsDeniedWhileItRuns() {
        ClaimAnswer.Granted lock = granted(a, calendar(0, 0));

        assertThat(denied(b, calendar(0, 0)).reason())
                .isIn(DenialReason.HELD, DenialReason.KEY_BUSY, DenialReason.TICK_DONE);

        release(a, lock);
    }

    @ParameterizedTest
    @ValueSource(longs = {-180, -6, -1, 1, 6, 180, 36_000})
    void replicasWhoseClocksDifferAgreeOnTheTick(long secondsAhead) {
        run(a, calendar(0, 0));

        assertThat(denied(b, calendar(secondsAhead, 0)).reason()).isEqualTo(DenialReason.TICK_DONE);
        run(b, calendar(secondsAhead, 1));
        assertThat(denied(a, calendar(0, 1)).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void anotherTriggerOfTheSameLockHasTicksOfItsOwn() {
        run(a, calendar("every ten minutes", 0, 0));

        run(b, calendar("every ten minutes in Berlin", 0, 0));
        run(b, new Tick.Rate("every minute", Duration.ofMinutes(1)));
        assertThat(denied(a, calendar("every ten minutes", 0, 0)).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void aCallWithoutATickIsDeniedByNone() {
        run(a, calendar(0, 0));

        run(b, null);
        run(a, null);
        assertThat(denied(b, calendar(0, 0)).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void aScheduleOfUnknownFireTimesRunsEachOfThemOnce() {
        Instant now = Instant.now();
        run(a, new Tick.Moment("own", now));

        assertThat(denied(b, new Tick.Moment("own", now)).reason()).isEqualTo(DenialReason.TICK_DONE);
        run(b, new Tick.Moment("own", now.plusMillis(200)));
    }

    @Test
    void whatLiesInTheFutureIsNoMemory() {
        run(a, new Tick.Moment("own", Instant.now().plusSeconds(3600)));

        run(b, new Tick.Moment("own", Instant.now()));
    }

    @Test
    void ofManyThatAskForATickAtOnceOneIsGranted() throws Exception {
        int askers = 4;
        Instant first = Instant.now().minusSeconds(1000);
        CyclicBarrier together = new CyclicBarrier(askers);
        ExecutorService threads = Executors.newFixedThreadPool(askers);
        try {
            List<Future<Integer>> results = new ArrayList<>();
            for (int asker = 0; asker < askers; asker++) {
                LockStore store = asker % 2 == 0 ? a : b;
                // As in the engine, a replica asks once at a time.
                Callable<Integer> rounds = () -> {
                    int granted = 0;
                    for (int round = 0; round < 40; round++) {
                        together.await();
                        Tick tick = new Tick.Moment("own", first.plusSeconds(round));
                        synchronized (store) {
                            if (store.claim(claim(tick)) instanceof ClaimAnswer.Granted lock) {
                                granted++;
                                release(store, lock);
                            }
                        }
                    }
                    return granted;
                };
                results.add(threads.submit(rounds));
            }
            int granted = 0;
            for (Future<Integer> result : results) {
                granted += result.get();
            }
            assertThat(granted).isEqualTo(40);
        } finally {
            threads.shutdownNow();
        }
    }

    // ---- a fixed rate

    @Test
    void aRateIsThatOfAllReplicasTogether() throws Exception {
        Tick tick = new Tick.Rate("rate", Duration.ofMillis(500));
        run(a, tick);

        assertThat(denied(b, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
        assertThat(denied(a, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
        runInTheEnd(b, tick);
        assertThat(denied(a, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void aReplicaAloneNeverMissesATickOfItsRateForBeingALittleEarly() throws Exception {
        Tick tick = new Tick.Rate("rate", Duration.ofMillis(300));
        for (int i = 0; i < 8; i++) {
            run(a, tick);
            // Timers are early now and then, but not on the whole.
            Thread.sleep(i % 2 == 0 ? 285 : 315);
        }
    }

    @Test
    void replicasInManyPhasesKeepTheRate() throws Exception {
        Duration period = Duration.ofMillis(300);
        Tick tick = new Tick.Rate("rate", period);
        int granted = 0;
        long begun = System.nanoTime();
        for (int i = 0; System.nanoTime() - begun < period.multipliedBy(12).toNanos(); i++) {
            LockStore asker = i % 2 == 0 ? a : b;
            if (asker.claim(claim(tick)) instanceof ClaimAnswer.Granted lock) {
                granted++;
                release(asker, lock);
            }
            Thread.sleep(30);
        }
        // Every second one would be six; a machine that stands still may cost some.
        assertThat(granted).isBetween(8, 13);
    }

    // ---- a fixed delay

    @Test
    void aDelayCountsFromTheEndOfTheLastRunOnWhateverReplica() throws Exception {
        Duration delay = Duration.ofMillis(400);
        Tick tick = new Tick.Delay(delay);
        ClaimAnswer.Granted lock = granted(a, tick);
        Thread.sleep(100);
        long ends = System.nanoTime();
        release(a, lock);

        assertThat(denied(b, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
        runInTheEnd(b, tick);

        assertThat(Duration.ofNanos(System.nanoTime() - ends)).isGreaterThanOrEqualTo(delay.minusMillis(50));
        assertThat(denied(a, tick).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    /** The server's calendar does not reach that far: it must be no error of the database. */
    @Test
    void anEndlessPeriodOrDelayIsATickLikeAnyOther() {
        Duration endless = Duration.ofMillis(Long.MAX_VALUE);
        run(a, new Tick.Delay(endless));
        assertThat(denied(b, new Tick.Delay(endless)).reason()).isEqualTo(DenialReason.TICK_DONE);
        run(a, new Tick.Rate("endless", endless));
        assertThat(denied(b, new Tick.Rate("endless", endless)).reason()).isEqualTo(DenialReason.TICK_DONE);
    }

    @Test
    void noDelayIsNoneToWaitFor() {
        run(a, new Tick.Delay(Duration.ZERO));
        run(b, new Tick.Delay(Duration.ZERO));
        run(a, new Tick.Delay(Duration.ZERO));
    }

    // ---- in the words of the tests

    /** The fire time that was due some while ago, or one after it, as a replica with such a clock sees it. */
    private static Tick calendar(long secondsAhead, int which) {
        return calendar("every ten minutes", secondsAhead, which);
    }

    private static Tick calendar(String trigger, long secondsAhead, int which) {
        Clock clock = Clock.offset(Clock.systemUTC(), Duration.ofSeconds(secondsAhead));
        Tick.FireTimes times = after -> {
            long passed = Math.floorDiv(Duration.between(START, after).toNanos(), GAP.toNanos());
            return START.plus(GAP.multipliedBy(passed + 1));
        };
        // The call is due as many seconds after a fire time by the replica's clock as that one is ahead of the
        // server's.
        Instant due = START.plus(GAP.multipliedBy(which)).plusSeconds(secondsAhead);
        return new Tick.Calendar(trigger, due, clock, times);
    }

    private Claim claim(@Nullable Tick tick) {
        return new Claim("job", KeyDerivation.SHA256.key(namespace, "job"), LEASE, null, null, tick);
    }

    private ClaimAnswer.Granted granted(LockStore store, @Nullable Tick tick) {
        ClaimAnswer answer = store.claim(claim(tick));
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    private void run(LockStore store, @Nullable Tick tick) {
        release(store, granted(store, tick));
    }

    private void runInTheEnd(LockStore store, Tick tick) {
        await().pollInterval(Duration.ofMillis(10)).until(() -> {
            a.tidyUp();
            b.tidyUp();
            if (store.claim(claim(tick)) instanceof ClaimAnswer.Granted lock) {
                release(store, lock);
                return true;
            }
            return false;
        });
    }

    private Denial denied(LockStore store, Tick tick) {
        ClaimAnswer answer = store.claim(claim(tick));
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial();
    }

    private void release(LockStore store, ClaimAnswer.Granted lock) {
        assertThat(store.release(new Release(
                        "job",
                        KeyDerivation.SHA256.key(namespace, "job"),
                        lock.fence(),
                        RunOutcome.SUCCEEDED,
                        null,
                        null,
                        null,
                        false)))
                .isTrue();
    }
}
