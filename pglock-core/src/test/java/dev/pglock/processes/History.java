package dev.pglock.processes;

import dev.pglock.LockStrategy;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What all processes did. */
final class History {

    private final List<Journal> journals = new ArrayList<>();
    private List<Journal.Body> bodies = List.of();

    Journal add(Journal journal) {
        journals.add(journal);
        return journal;
    }

    void read() throws IOException {
        List<Journal.Body> all = new ArrayList<>();
        for (Journal journal : journals) {
            all.addAll(journal.bodies());
        }
        bodies = all;
    }

    int size() {
        return bodies.size();
    }

    boolean allBegunSince(Instant moment) throws IOException {
        read();
        Set<String> names = bodies.stream()
                .filter(body -> body.begin().isAfter(moment))
                .map(Journal.Body::name)
                .collect(Collectors.toSet());
        return names.containsAll(CheckedReplica.NAMES);
    }

    /** How many bodies ran at the same time as a younger one of the same name. */
    int overlaps() {
        return (int) overlapping().count();
    }

    /** For how long two ran at the same time at the most, without the time in which one of them was frozen. */
    Duration longestOverlap(LockStrategy strategy) {
        return overlapping()
                .filter(overlap -> overlap.older().strategy() == strategy)
                .map(Overlap::length)
                .max(Comparator.naturalOrder())
                .orElse(Duration.ZERO);
    }

    private record Overlap(Journal.Body older, Journal.Body younger) {

        Duration length() {
            Instant from = younger.begin();
            Instant to = Stream.of(older, younger)
                    .map(body -> Objects.requireNonNull(body.end()))
                    .min(Comparator.naturalOrder())
                    .orElseThrow();
            Duration both = Duration.between(from, to)
                    .minus(older.journal().frozenBetween(from, to))
                    .minus(younger.journal().frozenBetween(from, to));
            return both.isNegative() ? Duration.ZERO : both;
        }
    }

    private Stream<Overlap> overlapping() {
        return bodies.stream()
                .flatMap(older -> bodies.stream()
                        .filter(younger -> younger.name().equals(older.name())
                                && younger.fence() > older.fence()
                                && younger.begin().isBefore(older.end()))
                        .map(younger -> new Overlap(older, younger))
                        .filter(overlap -> overlap.length().compareTo(Duration.ZERO) > 0));
    }

    /** The longest time after that moment for which no body of some name ran. */
    Duration longestIdleSince(Instant moment) {
        Duration longest = Duration.ZERO;
        for (String name : CheckedReplica.NAMES) {
            Instant held = moment;
            List<Journal.Body> inOrder = bodies.stream()
                    .filter(body -> body.name().equals(name))
                    .sorted(Comparator.comparing(Journal.Body::begin))
                    .toList();
            for (Journal.Body body : inOrder) {
                Duration idle = Duration.between(held, body.begin());
                longest = idle.compareTo(longest) > 0 ? idle : longest;
                Instant end = Objects.requireNonNull(body.end());
                held = end.isAfter(held) ? end : held;
            }
        }
        return longest;
    }
}
