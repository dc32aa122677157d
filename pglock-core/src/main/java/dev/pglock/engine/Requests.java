package dev.pglock.engine;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.store.KeyDerivation;
import java.time.Duration;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * What a caller asks for, with what configuration says of it, and the defaults.
 *
 * @param overrides configuration that wins over the program
 */
record Requests(EngineSettings settings, KeyDerivation keys, UnaryOperator<LockRequest> overrides, Homes homes) {

    /** Refuses what cannot be carried out, with the reason. */
    Asked resolve(LockRequest asked) {
        LockRequest request = overrides.apply(asked);
        LockStrategy strategy = Objects.requireNonNullElse(request.strategy(), settings.strategy());
        Tenures home = homes.find(strategy);
        if (home == null) {
            throw new IllegalArgumentException("Lock '" + request.name() + "' asks for the strategy " + strategy
                    + ", but this registry has only " + homes.strategies());
        }
        if (strategy == LockStrategy.ADVISORY && request.leaseDuration() != null) {
            throw new IllegalArgumentException(
                    "Lock '" + request.name() + "' is an advisory lock and has a lease duration of "
                            + "its own, but all advisory locks of a replica live on one session: set pglock.lease-duration for "
                            + "all of them, or use the lease for this one");
        }
        Duration lease = Objects.requireNonNullElse(request.leaseDuration(), settings.leaseDuration());
        return new Asked(
                request,
                key(request.name()),
                home,
                EngineSettings.checkLease(lease),
                Objects.requireNonNullElse(request.waitTimeout(), settings.waitTimeout()),
                request.maxHold() != null ? request.maxHold() : settings.maxHold(),
                Objects.requireNonNullElse(request.onLost(), settings.onLost()),
                null,
                false,
                System.nanoTime());
    }

    long key(String name) {
        return keys.key(settings.namespace(), name);
    }
}
