package dev.pglock.autoconfigure;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Lets {@code pglock.locks} win over what an annotation or a program asks for. Immutable. */
final class ConfiguredRequests implements UnaryOperator<LockRequest> {

    private final Map<String, PgLockProperties.Lock> locks;
    private final @Nullable LockStrategy only;

    /** @param only the strategy that all locks have, whatever they ask for; null: what they ask for */
    ConfiguredRequests(Map<String, PgLockProperties.Lock> locks, @Nullable LockStrategy only) {
        this.locks = locks;
        this.only = only;
    }

    static ConfiguredRequests of(PgLockSettings settings) {
        // In tests without a database every lock is in memory, also one that is annotated with a strategy.
        return new ConfiguredRequests(settings.locks(), settings.isLocal() ? LockStrategy.LOCAL : null);
    }

    @Override
    public LockRequest apply(LockRequest asked) {
        LockRequest request = asked;
        PgLockProperties.Lock lock = locks.get(asked.name());
        if (lock != null) {
            request = override(request, lock);
        }
        return only == null ? request : request.strategy(only);
    }

    private static LockRequest override(LockRequest asked, PgLockProperties.Lock lock) {
        LockRequest request = asked;
        if (lock.leaseDuration() != null) {
            request = request.leaseDuration(lock.leaseDuration());
        }
        if (lock.waitTimeout() != null) {
            request = request.waitTimeout(lock.waitTimeout());
        }
        if (lock.minHold() != null) {
            request = request.minHold(lock.minHold());
        }
        if (lock.maxHold() != null) {
            request = request.maxHold(lock.maxHold());
        }
        if (lock.onLost() != null) {
            request = request.onLost(lock.onLost());
        }
        if (lock.strategy() != null) {
            request = request.strategy(lock.strategy());
        }
        return request;
    }
}
