package dev.pglock.engine;

import dev.pglock.LockListener;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the listeners; what one of them throws is logged and changes nothing. Whoever must not be held up, as heartbeats and
 * the watchdog must not, tells them later: on a thread of its own, one thing after the other.
 */
final class Listeners {

    private static final Logger log = LoggerFactory.getLogger(Listeners.class);

    private final List<LockListener> listeners;
    private final ExecutorService later = Threads.pool("pglock-listener", 1);

    Listeners(List<LockListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    /** Returns at once. */
    void tellLater(Consumer<LockListener> event) {
        if (listeners.isEmpty()) {
            return;
        }
        try {
            later.execute(() -> tell(event));
        } catch (RejectedExecutionException e) {
            // The registry is closed, its threads are gone.
            tell(event);
        }
    }

    /** Lets what is to be told be told, but waits no longer than that. */
    void close(long millis) {
        later.shutdown();
        try {
            boolean ignored = later.awaitTermination(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** On the calling thread. */
    void tell(Consumer<LockListener> event) {
        for (LockListener listener : listeners) {
            try {
                event.accept(listener);
            } catch (RuntimeException | Error e) {
                log.warn("A lock listener failed: {}", listener.getClass().getName(), e);
            }
        }
    }
}
