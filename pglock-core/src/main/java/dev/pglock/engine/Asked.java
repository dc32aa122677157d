package dev.pglock.engine;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.Tick;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** A request with all that it left open filled in. */
record Asked(
        LockRequest request,
        long key,
        Tenures home,
        Duration lease,
        Duration waitTimeout,
        @Nullable Duration maxHold,
        OnLost onLost,
        @Nullable Tick tick,
        boolean isForWork,
        long since) {

    Asked at(@Nullable Tick itsTick) {
        return new Asked(request, key, home, lease, waitTimeout, maxHold, onLost, itsTick, isForWork, since);
    }

    Asked forWork() {
        return new Asked(request, key, home, lease, waitTimeout, maxHold, onLost, tick, true, since);
    }

    String name() {
        return request.name();
    }

    LockStrategy strategy() {
        return home.store().strategy();
    }

    HeldLock.Terms terms(long sentAt) {
        return new HeldLock.Terms(
                name(),
                request.family(),
                Duration.ofNanos(sentAt - since),
                sentAt,
                key,
                strategy(),
                lease,
                request.minHold(),
                maxHold == null ? null : sentAt + maxHold.toNanos(),
                onLost,
                request.version(),
                tick instanceof Tick.Delay);
    }
}
