package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LossReason;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class TenureTests {

    private static final Instant T0 = Instant.parse("2026-01-01T00:00:00Z");
    private static final long MS = 1_000_000;

    private final Tenure granted = Tenure.granted(7, T0, T0.plusSeconds(2), 0, Duration.ofSeconds(2));

    @Test
    void trustEndsAMarginBeforeTheLeaseCountedFromTheSending() {
        assertThat(granted.isTrusted(1799 * MS)).isTrue();
        assertThat(granted.isTrusted(1800 * MS)).isFalse();
        Tenure longer = Tenure.granted(7, T0, T0.plusSeconds(100), 0, Duration.ofSeconds(100));
        assertThat(longer.isTrusted(97_999 * MS)).isTrue();
        assertThat(longer.isTrusted(98_000 * MS)).isFalse();
    }

    @Test
    void theClockMayWrapAround() {
        long sentAt = Long.MAX_VALUE - 100 * MS;
        Tenure tenure = Tenure.granted(7, T0, T0.plusSeconds(2), sentAt, Duration.ofSeconds(2));
        assertThat(tenure.isTrusted(sentAt + 1799 * MS)).isTrue();
        assertThat(tenure.isTrusted(sentAt + 1800 * MS)).isFalse();
    }

    @Test
    void aRenewalMovesTheTrustAndNeverBack() {
        Tenure renewed = granted.renewed(T0.plusSeconds(3), 1000 * MS, Duration.ofSeconds(2), 1100 * MS);
        assertThat(renewed.isTrusted(2799 * MS)).isTrue();
        Tenure shorter = renewed.renewed(T0.plusSeconds(3), 1100 * MS, Duration.ofSeconds(1), 1200 * MS);
        assertThat(shorter.isTrusted(2799 * MS)).isTrue();
    }

    @Test
    void aRenewalThatIsAnsweredTooLateRevivesNothing() {
        Tenure late = granted.renewed(T0.plusSeconds(3), 1000 * MS, Duration.ofSeconds(2), 1900 * MS);
        assertThat(late).isSameAs(granted);
    }

    @Test
    void lostAndReleasedAreFinal() {
        Tenure lost = granted.lost(LossReason.TAKEN);
        assertThat(lost.isTrusted(1)).isFalse();
        assertThat(lost.released()).isSameAs(lost);
        assertThat(lost.lost(LossReason.EXPIRED).loss()).isEqualTo(LossReason.TAKEN);
        assertThat(lost.renewed(T0, 0, Duration.ofSeconds(9), 1)).isSameAs(lost);
        Tenure released = granted.released();
        assertThat(released.isTrusted(1)).isFalse();
        assertThat(released.lost(LossReason.EXPIRED)).isSameAs(released);
    }
}
