package dev.pglock.store;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One tenure to be renewed.
 *
 * @param name the lock's name
 * @param fence the tenure's fence
 * @param lease how long the tenure shall last from now at the least; it never gets shorter
 * @param payload what the payload becomes; null leaves it as it is
 */
public record Renewal(
        String name, long fence, Duration lease, @Nullable Payload payload) {

    /**
     * A payload to be written.
     *
     * @param data null removes it
     */
    public record Payload(@Nullable String data) {}
}
