package dev.pglock.local;

import dev.pglock.CompletedVersion;
import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockState;
import dev.pglock.LockStrategy;
import dev.pglock.store.TickGuard;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** One lock in memory, with the columns of the lease table. Guarded by its {@link LocalSpace}. */
final class LocalRow {

    @Nullable
    UUID holder;

    @Nullable
    String holderLabel;

    long fence;
    Instant acquiredAt = Instant.EPOCH;
    Instant expiresAt = Instant.EPOCH;

    @Nullable
    Instant holdUntil;

    @Nullable
    String data;

    /** Why an operator has paused it. */
    @Nullable
    String paused;

    /** Why an operator asks the present holder for it. */
    @Nullable
    String resign;

    @Nullable
    LastRun lastRun;

    /** When the last run ended, for schedules. */
    @Nullable
    Instant lastEnd;

    /** The last tick by trigger. */
    final Map<String, Instant> ticks = new HashMap<>();

    final Map<String, CompletedVersion> completed = new LinkedHashMap<>();

    boolean isLive(Instant now) {
        return holder != null && expiresAt.isAfter(now);
    }

    boolean isOnHold(Instant now) {
        return holdUntil != null && holdUntil.isAfter(now);
    }

    /** What a tick is compared with. */
    @Nullable
    Instant remembered(TickGuard tick) {
        return tick.trigger() != null ? ticks.get(tick.trigger()) : lastEnd;
    }

    void forget() {
        lastEnd = null;
        lastRun = null;
        ticks.clear();
        completed.clear();
    }

    boolean belongsTo(UUID asker, long askedFence) {
        return asker.equals(holder) && fence == askedFence;
    }

    /** Whether nothing would be forgotten with this row but its last run, and that ended before the moment. */
    boolean isForgettable(Instant now, Duration retention) {
        return holder == null
                && !isOnHold(now)
                && completed.isEmpty()
                && data == null
                && paused == null
                && (lastRun == null || lastRun.finishedAt().isBefore(now.minus(retention)));
    }

    LockInfo info(String name, Instant now) {
        LockState state = isLive(now)
                ? LockState.HELD
                : paused != null
                        ? LockState.PAUSED
                        : isOnHold(now) ? LockState.HOLD : holder != null ? LockState.EXPIRED : LockState.FREE;
        Instant until = switch (state) {
            case HELD, EXPIRED -> expiresAt;
            case HOLD -> holdUntil;
            case FREE, PAUSED -> null;
        };
        return new LockInfo(
                name,
                LockStrategy.LOCAL,
                state,
                holder == null ? null : holderLabel,
                fence,
                acquiredAt,
                until,
                data,
                lastRun,
                List.copyOf(completed.values()),
                paused,
                List.of());
    }
}
