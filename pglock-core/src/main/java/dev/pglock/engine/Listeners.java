package dev.pglock.engine;

import dev.pglock.LockListener;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells the listeners; what one of them throws is logged and changes nothing. */
final class Listeners {

    private static final Logger log = LoggerFactory.getLogger(Listeners.class);

    private final List<LockListener> listeners;

    Listeners(List<LockListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

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
