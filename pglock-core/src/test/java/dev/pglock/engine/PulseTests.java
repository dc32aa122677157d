package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.testing.CapturedLog;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A thread whose beats must not be the last. */
class PulseTests {

    private final CountDownLatch beats = new CountDownLatch(3);

    private final Pulse pulse = new Pulse("pglock-test") {
        @Override
        @Nullable
        Long beat(long now) {
            beats.countDown();
            throw new Unspeakable();
        }
    };

    /** Not even told of. */
    private static final class Unspeakable extends Error {

        private static final long serialVersionUID = 1L;

        @Override
        public String getMessage() {
            throw new IllegalStateException("nor is this");
        }
    }

    @AfterEach
    void stop() {
        pulse.stop(5_000);
    }

    @Test
    void aBeatThatFailsWithWhatCannotEvenBeLoggedIsNotTheLast() throws Exception {
        try (CapturedLog ignored = CapturedLog.of(Pulse.class)) {
            pulse.wakeBy(System.nanoTime());

            assertThat(beats.await(20, TimeUnit.SECONDS)).isTrue();
        }
    }
}
