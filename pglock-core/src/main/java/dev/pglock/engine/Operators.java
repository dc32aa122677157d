package dev.pglock.engine;

import dev.pglock.LockInfo;
import dev.pglock.LockNames;
import dev.pglock.LockState;
import dev.pglock.store.WakeUps;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What operators see of the locks of all replicas and do to them. What they do is in the log, with their reason. */
record Operators(Homes homes, Requests requests) {

    private static final Logger log = LoggerFactory.getLogger(Operators.class);
    private static final int GREATEST_REASON = 500;

    /** A name that one strategy holds may have a free row in the other. */
    private static final Comparator<LockInfo> HELD_FIRST = Comparator.comparing(info -> info.state() != LockState.HELD);

    Optional<LockInfo> find(String name) {
        String normal = LockNames.normalise(name);
        Optional<LockInfo> found = homes.all().stream()
                .flatMap(home -> home.store().find(normal).stream())
                .min(HELD_FIRST);
        return found.isEmpty()
                ? found
                : withWaiting(List.of(found.get())).stream().findFirst();
    }

    List<LockInfo> findAll() {
        Map<String, LockInfo> byName = new TreeMap<>();
        for (Tenures home : homes.all()) {
            for (LockInfo info : home.store().findAll()) {
                byName.merge(info.name(), info, (a, b) -> HELD_FIRST.compare(a, b) <= 0 ? a : b);
            }
        }
        return withWaiting(byName.values());
    }

    /** All stores of a registry see the same who wait. */
    private List<LockInfo> withWaiting(Collection<LockInfo> found) {
        Map<Integer, List<String>> waiting = homes.own().store().waiting();
        return waiting.isEmpty()
                ? List.copyOf(found)
                : found.stream()
                        .map(info -> info.waiting(
                                waiting.getOrDefault(WakeUps.waitKey(requests.key(info.name())), List.of())))
                        .toList();
    }

    boolean forceRelease(String name, String reason, boolean now) {
        String normal = LockNames.normalise(name);
        String why = oneLine(reason);
        long key = requests.key(normal);
        boolean ended = false;
        for (Tenures home : homes.all()) {
            ended |= home.outage().observe(() -> home.store().forceRelease(normal, key, now));
        }
        log.warn(
                "Lock '{}' was released by force, {}: {}; reason given: {}",
                normal,
                now ? "at once" : "others wait until the old holder's trust has ended",
                ended ? "the holder is told at its next heartbeat" : "nobody held it",
                why);
        return ended;
    }

    void pause(String name, String reason) {
        String normal = LockNames.normalise(name);
        String why = oneLine(reason);
        boolean changed = homes.own().store().pause(normal, why);
        log.info(
                "Lock '{}' {}: nobody is granted it until it is resumed; reason given: {}",
                normal,
                changed ? "was paused" : "is paused as before",
                why);
    }

    boolean resume(String name, String reason) {
        String normal = LockNames.normalise(name);
        String why = oneLine(reason);
        boolean changed = homes.own().store().pause(normal, null);
        log.info("Lock '{}' {}; reason given: {}", normal, changed ? "was resumed" : "was not paused", why);
        return changed;
    }

    boolean resign(String name, String reason) {
        String normal = LockNames.normalise(name);
        String why = oneLine(reason);
        long key = requests.key(normal);
        boolean asked = false;
        for (Tenures home : homes.all()) {
            asked |= home.store().resign(normal, key, why);
        }
        log.info(
                "The holder of lock '{}' {}; reason given: {}",
                normal,
                asked ? "is asked to give it back, and told at its next heartbeat" : "is nobody, so nobody was asked",
                why);
        return asked;
    }

    /** Whatever was sent. */
    private static String oneLine(String reason) {
        if (reason.isBlank()) {
            throw new IllegalArgumentException("A reason must be given");
        }
        String line = reason.strip().replaceAll("\\p{Cntrl}", " ");
        return line.length() <= GREATEST_REASON ? line : line.substring(0, GREATEST_REASON);
    }
}
