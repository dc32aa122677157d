package dev.pglock.benchmarks;

import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What is to be measured, and for how long.
 *
 * @param parts the tables that are wanted
 * @param rounds how often each combination is measured
 * @param length of one measurement
 * @param handOvers how many hand-overs are timed
 */
record Settings(Set<Part> parts, int rounds, Duration length, int handOvers) {

    /** A table. */
    enum Part {
        COSTS,
        THROUGHPUT,
        SLOW,
        HEARTBEAT,
        PROCESSES,
        INTERCEPTOR
    }

    static final String USAGE = """
            Options:
              --quick              one short round of everything: shows that it runs, measures nothing
              --rounds=5           how often each combination is measured
              --millis=500         length of one measurement
              --hand-overs=1000    how many hand-overs are timed
              --only=costs,slow    these tables only: %s""".formatted(Arrays.stream(Part.values())
            .map(part -> part.name().toLowerCase(Locale.ROOT))
            .collect(Collectors.joining(", ")));

    static Settings of(String[] arguments) {
        Set<Part> parts = new LinkedHashSet<>(Arrays.asList(Part.values()));
        int rounds = 5;
        Duration length = Duration.ofMillis(500);
        int handOvers = 1000;
        for (String argument : arguments) {
            String value = argument.substring(argument.indexOf('=') + 1);
            switch (argument.substring(0, argument.length() - value.length())) {
                case "--rounds=" -> rounds = Integer.parseInt(value);
                case "--millis=" -> length = Duration.ofMillis(Long.parseLong(value));
                case "--hand-overs=" -> handOvers = Integer.parseInt(value);
                case "--only=" ->
                    parts.retainAll(Arrays.stream(value.split(","))
                            .map(part -> Part.valueOf(part.toUpperCase(Locale.ROOT)))
                            .toList());
                default -> {
                    if (!argument.equals("--quick")) {
                        throw new IllegalArgumentException(argument + " is none of these.\n" + USAGE);
                    }
                    rounds = 1;
                    length = Duration.ofMillis(100);
                    handOvers = 20;
                }
            }
        }
        return new Settings(parts, rounds, length, handOvers);
    }
}
