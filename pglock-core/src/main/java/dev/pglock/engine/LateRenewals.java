package dev.pglock.engine;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renewals that came shortly before their locks would have been lost. What makes one of them late makes all of a replica
 * late: one WARN tells of all that a heartbeat has renewed, and listeners of each.
 */
final class LateRenewals {

    private static final Logger log = LoggerFactory.getLogger(LateRenewals.class);

    private final Listeners listeners;
    private final Queue<Late> untold = new ConcurrentLinkedQueue<>();

    private record Late(HeldLock lock, Duration left) {}

    LateRenewals(Listeners listeners) {
        this.listeners = listeners;
    }

    void add(HeldLock lock, Duration left) {
        untold.add(new Late(lock, left));
        listeners.tellLater(l -> l.renewedLate(lock, left));
    }

    /** Logs those that nobody has logged. From any thread: each of them is told once. */
    void tell() {
        List<Late> all = new ArrayList<>();
        for (Late late = untold.poll(); late != null; late = untold.poll()) {
            all.add(late);
        }
        all.stream()
                .map(Late::left)
                .min(Comparator.naturalOrder())
                .ifPresent(least -> log.warn(
                        "Renewals came late for {} of the locks held here, {}: {} ms later the first would have been lost. The"
                                + " database, the network or this process is slow",
                        all.size(),
                        HeldLock.named(all.stream().map(Late::lock).toList()),
                        least.toMillis()));
    }
}
