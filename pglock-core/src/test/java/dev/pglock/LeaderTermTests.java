package dev.pglock;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class LeaderTermTests {

    private final AtomicReference<Duration> trusted = new AtomicReference<>(Duration.ofSeconds(29));
    private final LeaderTerm term = new LeaderTerm("role", lock(), Duration.ofSeconds(30));

    private LockHandle lock() {
        return (LockHandle) Proxy.newProxyInstance(
                LeaderTermTests.class.getClassLoader(),
                new Class<?>[] {LockHandle.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "trustedFor" -> trusted.get();
                    case "fence" -> 1L;
                    default -> throw new UnsupportedOperationException(method.getName());
                });
    }

    @Test
    void itIsOverAQuarterOfTheLeaseBeforeItsLockIs() {
        trusted.set(Duration.ofMillis(7_501));
        assertThat(term.isActive()).isTrue();
        trusted.set(Duration.ofMillis(7_500));
        assertThat(term.isActive()).isFalse();
    }

    /** Work that has ended because of it is not begun again. */
    @Test
    void whatHasBeenSaidToBeOverIsNotRevivedByARenewalThatWasAnsweredLate() {
        trusted.set(Duration.ofSeconds(7));
        assertThat(term.isActive()).isFalse();
        trusted.set(Duration.ofSeconds(29));

        assertThat(term.isActive()).isFalse();
        assertThat(term.end()).isEqualTo(LeaderTerm.End.NOT_RENEWED);
    }
}
