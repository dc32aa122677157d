package dev.pglock.aop;

import dev.pglock.DenialReason;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ticks that are skipped because their lock could not be asked for. Of an outage the registry has said so, once, and the
 * scheduler has nothing to add at every tick. A lock that is refused, because of a limit say, is told here: of a tick
 * nobody else would hear of it. Thread-safe.
 */
final class RefusedTicks {

    private static final Logger log = LoggerFactory.getLogger(RefusedTicks.class);

    /** What was told: methods or tasks, which are few. */
    private final Set<Object> told = ConcurrentHashMap.newKeySet();

    /** Tells a refusal once, until {@link #granted}. */
    void skipped(Object task, String description, LockStorageException why) {
        if (why instanceof LockRefusedException && told.add(task)) {
            log.warn("Ticks of {} are skipped until its lock can be had: {}", description, why.getMessage());
        } else {
            log.debug("A tick of {} is skipped: its lock could not be asked for", description, why);
        }
    }

    /**
     * Of one that waits for its lock: what an operator has paused is no fault, nor is that this replica stops, with which no
     * trouble begins; whoever waited in vain is told of once.
     */
    void notAcquired(Object task, String description, LockNotAcquiredException why) {
        boolean isMeant = why.reason() == DenialReason.PAUSED || why.reason() == DenialReason.STOPPING;
        if (!isMeant && told.add(task)) {
            log.warn("Ticks of {} are skipped until its lock can be had: {}", description, why.getMessage());
        } else {
            log.debug("A tick of {} is skipped: {}", description, why.getMessage());
        }
    }

    /** Whoever interrupts a scheduler's thread ends the scheduler, or this task: he knows. */
    void interrupted(String description) {
        log.debug("A tick of {} is skipped: it was interrupted while it waited for its lock", description);
    }

    void granted(Object task) {
        if (!told.isEmpty()) {
            boolean ignored = told.remove(task);
        }
    }
}
