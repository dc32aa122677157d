package dev.pglock.engine;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a caller gets in place of the stage that a body returned: it completes like that one, after the lock's release.
 * Cancelling it cancels the body's.
 */
final class LaterResult<T extends @Nullable Object> extends CompletableFuture<T> {

    private static final Logger log = LoggerFactory.getLogger(LaterResult.class);

    private final CompletionStage<T> body;
    private volatile @Nullable RuntimeException cancelledFor;

    LaterResult(CompletionStage<T> body) {
        this.body = body;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        cancelBody(mayInterruptIfRunning);
        return super.cancel(mayInterruptIfRunning) || isCancelled();
    }

    /**
     * Cancels the body's stage.
     *
     * @param reason what the caller is told if that ends it; null: no more than that it was cancelled
     */
    void cancelBody(@Nullable RuntimeException reason) {
        cancelledFor = reason;
        cancelBody(true);
    }

    /**
     * Whether to cancel the body's stage is to end its work. A {@link CompletableFuture} is completed by it, while whatever
     * would have completed it goes on; one with a {@code cancel} of its own is taken to know what it does.
     */
    boolean cancellingEndsTheWork() {
        if (!(body instanceof CompletableFuture)) {
            return body instanceof Future;
        }
        try {
            return body.getClass().getMethod("cancel", boolean.class).getDeclaringClass() != CompletableFuture.class;
        } catch (NoSuchMethodException e) {
            // In a native image, say, that knows no methods of that class: its lock is better kept for too long.
            return false;
        }
    }

    /** A stage that cannot be cancelled goes on, and the lock with it. */
    private void cancelBody(boolean mayInterruptIfRunning) {
        if (body instanceof Future<?> future) {
            try {
                future.cancel(mayInterruptIfRunning);
            } catch (UnsupportedOperationException e) {
                log.debug("The stage of a locked body cannot be cancelled", e);
            }
        }
    }

    /** The body's stage has completed, and the lock is no longer held for it. */
    @SuppressWarnings("NullAway") // a stage that did not fail has a value of its type
    void complete(@Nullable T value, @Nullable Throwable failure) {
        if (failure == null) {
            complete(value);
        } else {
            RuntimeException reason = causeOf(failure) instanceof CancellationException ? cancelledFor : null;
            completeExceptionally(reason == null ? failure : reason);
        }
    }

    /** Without what stages wrap around a failure on its way. */
    static Throwable causeOf(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }
}
