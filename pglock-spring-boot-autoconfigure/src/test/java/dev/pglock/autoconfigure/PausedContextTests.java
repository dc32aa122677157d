package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.annotation.Singleton;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.annotation.Scheduled;

/**
 * What the test framework does with cached contexts that it does not use at the moment, and whoever calls {@code stop()}
 * and {@code start()} himself.
 */
class PausedContextTests extends TwoReplicas {

    /** What {@link TwoReplicas} has set. */
    private static final Duration HEARTBEAT = Duration.ofMillis(300);

    private static final String PHASE = "spring.lifecycle.timeout-per-shutdown-phase=";

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    /** Both ways of Spring: the cache of contexts pauses them, a program stops them. */
    private enum Way {
        STOP {
            @Override
            void leave(ConfigurableApplicationContext replica) {
                replica.stop();
            }

            @Override
            void comeBack(ConfigurableApplicationContext replica) {
                replica.start();
            }
        },
        PAUSE {
            @Override
            void leave(ConfigurableApplicationContext replica) {
                replica.pause();
            }

            @Override
            void comeBack(ConfigurableApplicationContext replica) {
                replica.restart();
            }
        };

        abstract void leave(ConfigurableApplicationContext replica);

        abstract void comeBack(ConfigurableApplicationContext replica);
    }

    private Future<?> turn(ConfigurableApplicationContext replica, Turn turn) {
        return threads.submit(() -> replica.getBean(Turns.class).take(turn));
    }

    @ParameterizedTest
    @CsvSource({
        "lease, STOP, true",
        "lease, PAUSE, false",
        "advisory, STOP, false",
        "advisory, PAUSE, true",
    })
    void inTheMidstOfABodyTheOtherReplicaTakesItWithinAHeartbeatOfItsEndAndTheStoppedOneComesBack(
            String strategy, Way way, boolean interrupted) throws Exception {
        String itsStrategy = "pglock.strategy=" + strategy;
        ConfigurableApplicationContext a = start("a", Turning.class, itsStrategy, PHASE + (interrupted ? "1s" : "20s"));
        ConfigurableApplicationContext b = start("b", Turning.class, itsStrategy);
        Turn ofA = new Turn();
        Future<?> bodyOfA = turn(a, ofA);
        await().until(ofA.began::isDone);
        Turn ofB = new Turn();
        Future<?> bodyOfB = turn(b, ofB);

        Future<?> leaving = threads.submit(() -> way.leave(a));
        await().until(() -> !a.getBean(PgLockLifecycle.class).isRunning());
        if (!interrupted) {
            // As long as it runs it keeps its lock.
            await().during(HEARTBEAT).atMost(HEARTBEAT.multipliedBy(10)).until(() -> !ofB.began.isDone());
            ofA.end.countDown();
        }

        long endOfA = ofA.ended.get(10, TimeUnit.SECONDS);
        long beginOfB = ofB.began.get(10, TimeUnit.SECONDS);
        assertThat(ofA.wasInterrupted.get(1, TimeUnit.SECONDS)).isEqualTo(interrupted);
        assertThat(Duration.ofNanos(beginOfB - endOfA)).isBetween(Duration.ZERO, HEARTBEAT);
        leaving.get(10, TimeUnit.SECONDS);
        bodyOfA.get(1, TimeUnit.SECONDS);
        // Away, it takes nothing, and does not wait for it either.
        assertThat(turn(a, new Turn()))
                .failsWithin(Duration.ofSeconds(2))
                .withThrowableThat()
                .withCauseInstanceOf(LockNotAcquiredException.class);

        way.comeBack(a);
        Turn again = new Turn();
        Future<?> secondOfA = turn(a, again);
        await().during(HEARTBEAT).atMost(HEARTBEAT.multipliedBy(10)).until(() -> !again.began.isDone());
        ofB.end.countDown();
        long endOfB = ofB.ended.get(5, TimeUnit.SECONDS);
        assertThat(Duration.ofNanos(again.began.get(5, TimeUnit.SECONDS) - endOfB))
                .isBetween(Duration.ZERO, HEARTBEAT);
        // It outlasts its lease: somebody renews it.
        await().during(Duration.ofSeconds(2)).atMost(Duration.ofSeconds(8)).until(() -> !again.ended.isDone());
        assertThat(heartbeats()).as("one for each replica").isEqualTo(2);
        assertThat(sessionsOf("a")).as("what one heartbeat and one claim need").isLessThanOrEqualTo(2);
        again.end.countDown();
        secondOfA.get(5, TimeUnit.SECONDS);
        bodyOfB.get(5, TimeUnit.SECONDS);
    }

    @ParameterizedTest
    @CsvSource({"lease, STOP", "lease, PAUSE", "advisory, PAUSE"})
    void aPausedContextLeavesItsTicksToOthersAndTakesPartAgainWithTheSameHeartbeat(String strategy, Way way) {
        ConfigurableApplicationContext a = start("a", Ticking.class, "pglock.strategy=" + strategy);
        ConfigurableApplicationContext b = start("b", Ticking.class, "pglock.strategy=" + strategy);
        await().until(() -> runsOf("a") > 0 && runsOf("b") > 0);
        await().until(() -> heartbeats() == 2);

        way.leave(a);
        assertThat(a.getBean(LockRegistry.class).runOnce("other", () -> {})).isFalse();
        assertThat(b.getBean(LockRegistry.class).runOnce("other", () -> {})).isTrue();
        long ofA = runsOf("a");
        long ofB = runsOf("b");
        await().until(() -> runsOf("b") > ofB + 3);
        assertThat(runsOf("a")).isEqualTo(ofA);

        way.comeBack(a);
        assertThat(a.getBean(LockRegistry.class).runOnce("other", () -> {})).isTrue();
        way.leave(b);
        await().until(() -> runsOf("a") > ofA + 3);
        assertThat(heartbeats()).isEqualTo(2);
        assertThat(overlaps("tick")).isZero();
    }

    @Test
    void afterManyPausesTheTicksComeAsOftenAsBeforeByTheSameSessionsAndThreads() {
        ConfigurableApplicationContext a = start("a", EverySecond.class);
        Steady steady = a.getBean(Steady.class);
        await().atMost(Duration.ofSeconds(5)).until(() -> steady.runs() > 0);
        for (int i = 0; i < 10; i++) {
            Way way = i % 2 == 0 ? Way.STOP : Way.PAUSE;
            way.leave(a);
            way.comeBack(a);
        }

        long began = System.nanoTime();
        int before = steady.runs();
        await().pollDelay(Duration.ofSeconds(4)).atMost(Duration.ofSeconds(10)).until(() -> true);
        int runs = steady.runs() - before;
        long seconds = Duration.ofNanos(System.nanoTime() - began).toSeconds();
        assertThat(runs).as("one a second").isBetween(2, (int) seconds + 2);
        assertThat(heartbeats()).isEqualTo(1);
        assertThat(sessionsOf("a")).isLessThanOrEqualTo(2);
    }

    private long runsOf(String replica) {
        return database.number("SELECT count(*) FROM runs WHERE job = 'tick' AND replica = ?", replica);
    }

    private long sessionsOf(String replica) {
        return database.number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ?",
                "pglock:orders:" + replica);
    }

    private static long heartbeats() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("pglock-heartbeat"))
                .count();
    }

    /** One call of a body, and what became of it. */
    private static final class Turn {

        final CompletableFuture<Long> began = new CompletableFuture<>();
        final CompletableFuture<Long> ended = new CompletableFuture<>();
        final CompletableFuture<Boolean> wasInterrupted = new CompletableFuture<>();
        final CountDownLatch end = new CountDownLatch(1);
    }

    static class Turns {

        @Singleton("turn")
        void take(Turn turn) {
            LockContext.requireHeld("turn");
            turn.began.complete(System.nanoTime());
            boolean interrupted = false;
            try {
                turn.end.await();
            } catch (InterruptedException e) {
                interrupted = true;
            }
            turn.ended.complete(System.nanoTime());
            turn.wasInterrupted.complete(interrupted);
        }
    }

    static class Turning extends Application {

        @Bean
        Turns turns() {
            return new Turns();
        }
    }

    static class Steady {

        private final AtomicInteger runs = new AtomicInteger();

        int runs() {
            return runs.get();
        }

        @Scheduled(fixedRate = 1_000)
        void tick() {
            int ignored = runs.incrementAndGet();
        }
    }

    static class EverySecond extends Application {

        @Bean
        Steady steady() {
            return new Steady();
        }
    }
}
