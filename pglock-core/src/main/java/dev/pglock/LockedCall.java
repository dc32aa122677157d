package dev.pglock;

import org.jspecify.annotations.Nullable;

/**
 * Work that runs under a lock and returns a result.
 *
 * @param <T> the result's type
 * @param <E> what the work may throw
 */
@FunctionalInterface
public interface LockedCall<T extends @Nullable Object, E extends Throwable> {

    /**
     * Does the work.
     *
     * @return the result, handed to the caller as it is
     * @throws E whatever the work throws, handed to the caller as it is
     */
    T call() throws E;
}
