package dev.pglock.store;

import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * What time it is on the server, told without asking it: learnt from every answer that bears its time. The estimate stays
 * what it was as long as no answer proves it wrong, so that it does not waver by the duration of round trips. Thread-safe;
 * never blocks.
 */
public final class ServerClock {

    private static final long UNKNOWN = Long.MIN_VALUE;

    /** The server's time less {@link System#nanoTime()}, in nanoseconds. */
    private final AtomicLong offset = new AtomicLong(UNKNOWN);

    /** Creates a clock that knows nothing yet. */
    public ServerClock() {}

    /**
     * Learns from an answer.
     *
     * @param sentAt {@link System#nanoTime()} before the question was sent
     * @param server the server's time when it answered
     * @param receivedAt {@link System#nanoTime()} when the answer was there
     */
    public void learn(long sentAt, Instant server, long receivedAt) {
        long time = TimeUnit.SECONDS.toNanos(server.getEpochSecond()) + server.getNano();
        long least = time - receivedAt;
        long greatest = time - sentAt;
        offset.updateAndGet(known ->
                known == UNKNOWN ? least + (greatest - least) / 2 : Math.max(least, Math.min(greatest, known)));
    }

    /**
     * The server's time now.
     *
     * @return null if nothing was learnt yet
     */
    public @Nullable Instant now() {
        long known = offset.get();
        return known == UNKNOWN ? null : Instant.ofEpochSecond(0, System.nanoTime() + known);
    }
}
