package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockHandle;
import dev.pglock.LockInfo;
import dev.pglock.LockRequest;
import dev.pglock.RunOutcome;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a registry promises besides where every lock is a row, with an expiry of its own. */
abstract class RowRegistryContract extends LockRegistryContract {

    @Test
    void aDenialTellsWhoHoldsTheLockAndForHowLong() {
        LockHandle lock = granted(a, "n");
        LockAttempt.Denied denied = (LockAttempt.Denied) b.attempt(LockRequest.of("n"));
        assertThat(denied.denial().holder()).isEqualTo("A");
        assertThat(denied.denial().fence()).isEqualTo(lock.fence());
        assertThat(denied.denial().expiresIn()).isPositive().isLessThanOrEqualTo(LEASE);
    }

    @Test
    void aForcedReleaseTellsTheHolderAndKeepsOthersOutUntilItsTrustHasEnded() {
        LockHandle lock = granted(a, "n");
        assertThat(b.forceRelease("n", "the test says so")).isTrue();
        assertThat(denied(b, "n")).isEqualTo(DenialReason.HOLD);
        await().atMost(Duration.ofSeconds(4)).until(() -> !lock.isHeld());
        await().atMost(Duration.ofSeconds(4))
                .until(() -> b.tryAcquire(LockRequest.of("n")).isPresent());
        await().untilAsserted(() -> assertThat(events).contains("A lost n TAKEN"));
        assertThat(b.forceRelease("never seen", "none")).isFalse();
    }

    @Test
    void theLastRunIsTold() {
        LockHandle lock = granted(a, "n");
        lock.close();
        LockInfo info = b.find("n").orElseThrow();
        assertThat(info.lastRun()).isNotNull();
        assertThat(info.lastRun().outcome()).isEqualTo(RunOutcome.SUCCEEDED);
        assertThat(info.lastRun().holder()).isEqualTo("A");
    }
}
