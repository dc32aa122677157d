package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.RunOutcome;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.annotation.Import;

/** Each assertion holds where it should, and where it does not, says what there is. */
@PgLockTest(properties = "pglock.instance-id=here")
@Import(NightlyReport.class)
class LockAssertTests {

    @Autowired
    private LockRegistry locks;

    @Autowired
    private NightlyReport job;

    private static void fails(ThrowingCallable assertion, String... parts) {
        assertThatExceptionOfType(AssertionError.class).isThrownBy(assertion).withMessageContainingAll(parts);
    }

    @Test
    void aHeldLockIsHeldByItsReplica() {
        try (LockHandle lock = locks.tryAcquire(LockRequest.of("held")).orElseThrow()) {
            assertThatLock(locks, "held").isHeld().isHeldBy("here");
            fails(() -> assertThatLock(locks, "held").isFree(), "[lock 'held']", "free", "HELD");
            fails(() -> assertThatLock(locks, "held").isNotHeld(), "HELD");
            fails(() -> assertThatLock(locks, "held").isHeldBy("there"), "'there'", "holder=here");
            fails(() -> assertThatLock(locks, "held").wasRun(RunOutcome.SUCCEEDED), "SUCCEEDED");
            lock.ensureHeld();
        }
        assertThatLock(locks, "held").isNotHeld().isFree();
        fails(() -> assertThatLock(locks, "held").isHeld(), "FREE");
    }

    @Test
    void whatKeepsOthersOutIsNotHeldAndNotFree() throws Exception {
        locks.runOnce(LockRequest.of("kept").minHold(Duration.ofMinutes(1)), () -> {});
        assertThatLock(locks, "kept").isNotHeld();
        fails(() -> assertThatLock(locks, "kept").isFree(), "HOLD");

        locks.pause("paused", "a test");
        assertThatLock(locks, "paused").isPaused().isNotHeld();
        fails(() -> assertThatLock(locks, "paused").isFree(), "PAUSED");
        fails(() -> assertThatLock(locks, "kept").isPaused(), "HOLD");
    }

    @Test
    void runsAndVersionsAreRemembered() {
        assertThatLock(locks, "backfill").wasNotRun().isFree().isNotHeld();
        fails(() -> assertThatLock(locks, "backfill").hasCompleted("1"), "'1'", "nobody has ever asked");
        job.backfill();
        assertThatLock(locks, "backfill")
                .wasRun(RunOutcome.SUCCEEDED)
                .wasRunBy("here")
                .hasCompleted("1");
        fails(() -> assertThatLock(locks, "backfill").wasNotRun(), "SUCCEEDED");
        fails(() -> assertThatLock(locks, "backfill").wasRunBy("there"), "'there'");
        fails(() -> assertThatLock(locks, "backfill").wasRun(RunOutcome.FAILED), "FAILED");
    }
}
