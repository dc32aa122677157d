package dev.pglock.store;

import dev.pglock.Tick;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One attempt to take a lock.
 *
 * @param name the lock's name in normal form
 * @param key the name's advisory key
 * @param lease how long the grant is good for
 * @param version work that is done once for ever: denied if it has succeeded
 * @param data the payload to write with the grant
 * @param tick the firing of a schedule that the lock is asked for: denied if it, or a later one, has been granted
 */
public record Claim(
        String name,
        long key,
        Duration lease,
        @Nullable String version,
        @Nullable String data,
        @Nullable Tick tick) {

    /**
     * An attempt that belongs to no schedule.
     *
     * @param name the lock's name in normal form
     * @param key the name's advisory key
     * @param lease how long the grant is good for
     * @param version work that is done once for ever
     * @param data the payload to write with the grant
     */
    public Claim(String name, long key, Duration lease, @Nullable String version, @Nullable String data) {
        this(name, key, lease, version, data, null);
    }
}
