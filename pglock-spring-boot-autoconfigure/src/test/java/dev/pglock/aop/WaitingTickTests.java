package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.Singleton;
import dev.pglock.engine.LockEngine;
import dev.pglock.local.LocalSpace;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** Ticks that wait for their turn: on the one thread that all of the scheduler's tasks share. */
@ExtendWith(OutputCaptureExtension.class)
class WaitingTickTests {

    private static final String TOLD = "are skipped until its lock can be had";

    private static Runs runs = new Runs();

    private final LocalSpace space = new LocalSpace();
    private final Replica other = Replica.start("other", space);

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Jobs {

        @Scheduled(fixedRate = 50, timeUnit = TimeUnit.MILLISECONDS)
        @EveryReplica
        @Singleton(name = "turn", waitTimeout = "200ms")
        public void turn() {
            runs.run("turn", 0);
        }

        @Scheduled(fixedRate = 50, timeUnit = TimeUnit.MILLISECONDS)
        @EveryReplica
        public void beside() {
            runs.run("beside", 0);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class PatientJob {

        @Scheduled(fixedRate = 50, timeUnit = TimeUnit.MILLISECONDS)
        @EveryReplica
        @Singleton(name = "patient", waitTimeout = "30s")
        public void patient() {
            runs.run("patient", 0);
        }

        @Scheduled(fixedRate = 50, timeUnit = TimeUnit.MILLISECONDS)
        @EveryReplica
        public void beside() {
            runs.run("beside", 0);
        }
    }

    @BeforeEach
    void clear() {
        runs = new Runs();
    }

    @AfterEach
    void close() {
        other.close();
    }

    private static void awaitRuns(String job, int more) {
        int before = runs.count(job);
        await().atMost(Duration.ofSeconds(10)).until(() -> runs.count(job) >= before + more);
    }

    @Test
    void aPauseSkipsThemAndKeepsTheSchedulersThreadFromNoOtherTask(CapturedOutput output) {
        other.registry().pause("turn", "the test says so");
        try (Replica replica = Replica.start("A", space, Jobs.class)) {
            long began = System.nanoTime();
            awaitRuns("beside", 40);
            assertThat(Duration.ofNanos(System.nanoTime() - began))
                    .as("with a wait of 200 ms for each tick: 8 s")
                    .isLessThan(Duration.ofSeconds(6));
            assertThat(runs.count("turn")).isZero();
            assertThat(replica.registry().resume("turn", "the test says so")).isTrue();
            awaitRuns("turn", 3);
        }
        assertThat(output).doesNotContain("ERROR").doesNotContain("WARN");
    }

    @Test
    void whoWaitedInVainIsToldOfOnce(CapturedOutput output) {
        LockHandle elsewhere =
                other.registry().tryAcquire(LockRequest.of("turn")).orElseThrow();
        try (Replica replica = Replica.start("A", space, Jobs.class)) {
            assertThat(replica.registry().owns(elsewhere)).isFalse();
            await().atMost(Duration.ofSeconds(10)).until(() -> output.getOut().contains(TOLD));
            // The tasks take turns: turn waits in vain again before beside has run thrice.
            awaitRuns("beside", 3);
            elsewhere.close();
            awaitRuns("turn", 3);
        }
        assertThat(output).doesNotContain("ERROR").containsOnlyOnce(TOLD);
    }

    @Test
    void whoWaitsWhileItsReplicaStopsHasNothingToTell(CapturedOutput output) {
        try (LockHandle elsewhere =
                        other.registry().tryAcquire(LockRequest.of("patient")).orElseThrow();
                Replica replica = Replica.start("A", space, PatientJob.class)) {
            assertThat(replica.registry().owns(elsewhere)).isFalse();
            awaitThat("a tick waits", WaitingTickTests::somebodyWaits);
            boolean ignored = ((LockEngine) replica.registry()).stop(Duration.ZERO);
            awaitRuns("beside", 3);
        }
        assertThat(output).doesNotContain("ERROR").doesNotContain("WARN");
    }

    @Test
    void whoIsInterruptedByTheEndOfItsSchedulerHasNothingToTell(CapturedOutput output) {
        try (LockHandle elsewhere =
                        other.registry().tryAcquire(LockRequest.of("patient")).orElseThrow();
                Replica replica = Replica.start("A", space, PatientJob.class)) {
            assertThat(replica.registry().owns(elsewhere)).isFalse();
            awaitThat("a tick waits", WaitingTickTests::somebodyWaits);
            replica.closeContext();
            awaitThat("none waits any more", () -> !somebodyWaits());
        }
        assertThat(output).doesNotContain("ERROR").doesNotContain("WARN");
    }

    private static void awaitThat(String what, Callable<Boolean> condition) {
        await(what).atMost(Duration.ofSeconds(10)).until(condition);
    }

    /** Only the stacks tell: the listeners of the registry hear of the end of a wait. */
    private static boolean somebodyWaits() {
        return Thread.getAllStackTraces().values().stream()
                .flatMap(Arrays::stream)
                .anyMatch(frame -> frame.getClassName().equals("dev.pglock.engine.Gate$Bell"));
    }
}
