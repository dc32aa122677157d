package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HeartbeatTests {

    private static Heartbeat configured(@Nullable Duration interval) {
        LocalStore store = new LocalStore(StoreIdentity.random("heartbeat", "A"), new LocalSpace());
        Listeners listeners = new Listeners(List.of());
        return new Heartbeat(
                "pglock-test",
                store,
                new Outage(store.strategy(), listeners, () -> {}),
                List.of(),
                interval,
                new LateRenewals(listeners),
                listeners);
    }

    /** Of 500 ms, 300 are trusted: a third of the whole would leave a network and a scheduler 9 ms. */
    @ParameterizedTest
    @ValueSource(longs = {500, 600, 1_000, 2_000, 30_000})
    void whenARenewalIsDueItHasTimeBeforeItIsLateHoweverShortTheLease(long millis) {
        Duration lease = Duration.ofMillis(millis);
        Duration trusted = Tenure.trusted(lease);
        long interval = configured(null).interval(lease);

        Duration left = trusted.minusNanos(interval);

        assertThat(left.minus(trusted.dividedBy(4))).isGreaterThan(Duration.ofMillis(100));
        assertThat(Heartbeat.budget(interval)).as("ends with the trust").isLessThanOrEqualTo(left);
    }

    @Test
    void itIsNeverLessOftenThanConfigured() {
        assertThat(configured(Duration.ofMillis(300)).interval(Duration.ofSeconds(30)))
                .isEqualTo(Duration.ofMillis(300).toNanos());
    }
}
