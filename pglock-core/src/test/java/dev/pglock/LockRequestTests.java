package dev.pglock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LockRequestTests {

    @Test
    void whatIsNotSetIsLeftToTheRegistry() {
        LockRequest request = LockRequest.of("n");
        assertThat(request.leaseDuration()).isNull();
        assertThat(request.waitTimeout()).isNull();
        assertThat(request.strategy()).isNull();
        assertThat(request.onLost()).isNull();
        assertThat(request.version()).isNull();
        assertThat(request.data()).isNull();
    }

    @Test
    void everyMethodReturnsANewRequest() {
        LockRequest plain = LockRequest.of("n");
        LockRequest full = plain.leaseDuration(Duration.ofSeconds(5))
                .waitTimeout(Duration.ZERO)
                .minHold(Duration.ofSeconds(1))
                .maxHold(Duration.ofSeconds(2))
                .onLost(OnLost.CONTINUE)
                .strategy(LockStrategy.LEASE)
                .version("1")
                .data("d");
        assertThat(plain).isEqualTo(LockRequest.of("n"));
        assertThat(full.leaseDuration()).isEqualTo(Duration.ofSeconds(5));
        assertThat(full.waitTimeout()).isZero();
        assertThat(full.minHold()).isEqualTo(Duration.ofSeconds(1));
        assertThat(full.maxHold()).isEqualTo(Duration.ofSeconds(2));
        assertThat(full.onLost()).isEqualTo(OnLost.CONTINUE);
        assertThat(full.strategy()).isEqualTo(LockStrategy.LEASE);
        assertThat(full.version()).isEqualTo("1");
        assertThat(full.data()).isEqualTo("d");
    }

    @Test
    void namesAreExactCaseSensitiveTextInNormalFormC() {
        assertThat(LockRequest.of("cafe\u0301")).isEqualTo(LockRequest.of("caf\u00e9"));
        assertThat(LockRequest.of("Job")).isNotEqualTo(LockRequest.of("job"));
        assertThat(LockRequest.of(" n ").name()).isEqualTo(" n ");
        assertThat(LockRequest.of("x".repeat(255)).name()).hasSize(255);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\t", "a\0b", "\ud83d"})
    void namesThatCannotBeKeptAreRefused(String name) {
        assertThatIllegalArgumentException().isThrownBy(() -> LockRequest.of(name));
    }

    @Test
    void aNameThatIsTooLongIsRefusedAndNeverCut() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LockRequest.of("x".repeat(256)))
                .withMessageContaining("256");
    }

    @Test
    void durationsMustMakeSense() {
        LockRequest request = LockRequest.of("n");
        assertThatIllegalArgumentException().isThrownBy(() -> request.leaseDuration(Duration.ZERO));
        assertThatIllegalArgumentException().isThrownBy(() -> request.waitTimeout(Duration.ofSeconds(-1)));
        assertThatIllegalArgumentException().isThrownBy(() -> request.minHold(Duration.ofSeconds(-1)));
        assertThatIllegalArgumentException().isThrownBy(() -> request.maxHold(Duration.ZERO));
    }

    @Test
    void payloadHasALimitInBytes() {
        assertThat(LockRequest.of("n").data("x".repeat(8192)).data()).hasSize(8192);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LockRequest.of("n").data("x".repeat(8193)));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LockRequest.of("n").data("\u00e9".repeat(4097)));
    }
}
