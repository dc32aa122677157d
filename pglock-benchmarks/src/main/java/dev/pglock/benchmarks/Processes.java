package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.Peer;
import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.benchmarks.peers.Place;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** What only processes show: a lock that goes from one JVM to another, by release and by death. */
final class Processes {

    private static final Duration LEASE = Duration.ofSeconds(5);
    private static final List<PeerKind> PEERS =
            List.of(PeerKind.LEASE, PeerKind.ADVISORY, PeerKind.SHEDLOCK, PeerKind.SPRING_INTEGRATION);

    private final Arena arena;
    private final Settings settings;

    Processes(Arena arena, Settings settings) {
        this.arena = arena;
        this.settings = settings;
    }

    void print() throws Exception {
        Table table = new Table("who", "hand-over p50, ms", "p99, ms", "longest, ms", "of", "after kill -9, ms", "of");
        for (PeerKind kind : PEERS) {
            List<Double> takeOvers = new ArrayList<>();
            for (int i = 0; i < settings.rounds(); i++) {
                takeOvers.add(takeOver(kind, "taken over " + i));
            }
            List<String> cells = new ArrayList<>(List.of(kind.title()));
            if (kind.waits()) {
                // Who polls is timed a tenth as often: he takes ten times as long.
                int times = kind == PeerKind.SPRING_INTEGRATION ? settings.handOvers() / 10 : settings.handOvers();
                Sample handOvers = Sample.of(handOvers(kind, times));
                cells.addAll(List.of(
                        Table.number(handOvers.median()),
                        Table.number(handOvers.percentile(99)),
                        Table.number(handOvers.greatest()),
                        Integer.toString(handOvers.size())));
            } else {
                cells.addAll(List.of("does not wait", "", "", ""));
            }
            cells.addAll(List.of(Sample.of(takeOvers).toString(), Integer.toString(takeOvers.size())));
            table.row(cells);
        }
        table.print(
                "From one JVM to another",
                "Two JVMs. A lock outlives its holder by " + LEASE.toSeconds()
                        + " s where it has an expiry. Who cannot wait is" + " asked every 100 ms.");
    }

    private double takeOver(PeerKind kind, String name) throws Exception {
        Process holder = start(Holder.class, kind, "holder", name);
        try (Peer waiter = kind.open(
                        arena.place("waiter", 2, LEASE, arena.database().url()));
                BufferedReader says = says(holder)) {
            // The first attempt opens connections.
            Objects.requireNonNull(waiter.tryLock("warm")).unlock();
            if (!"held".equals(says.readLine())) {
                throw new IllegalStateException("The holder did not get the lock");
            }
            CompletableFuture<Long> taken = CompletableFuture.supplyAsync(() -> {
                try {
                    Peer.Held held = waiter.lock(name);
                    long at = System.nanoTime();
                    held.unlock();
                    return at;
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            TimeUnit.MILLISECONDS.sleep(500 + ThreadLocalRandom.current().nextInt(1000));
            long killed = System.nanoTime();
            holder.destroyForcibly();
            return (taken.get(1, TimeUnit.MINUTES) - killed) / 1e6;
        } finally {
            holder.destroyForcibly();
        }
    }

    private List<Double> handOvers(PeerKind kind, int times) throws Exception {
        List<Process> two = new ArrayList<>();
        List<Event> events = new ArrayList<>();
        try {
            for (String label : List.of("A", "B")) {
                two.add(start(Alternating.class, kind, label, Integer.toString(times / 2 + 1)));
            }
            List<CompletableFuture<List<Event>>> logs = two.stream()
                    .map(one -> CompletableFuture.supplyAsync(() -> log(one)))
                    .toList();
            for (CompletableFuture<List<Event>> log : logs) {
                events.addAll(log.get(10, TimeUnit.MINUTES));
            }
        } finally {
            two.forEach(Process::destroyForcibly);
        }
        events.sort(Comparator.comparingLong(Event::micros));
        List<Double> millis = new ArrayList<>();
        for (int i = 1; i < events.size(); i++) {
            Event before = events.get(i - 1);
            Event after = events.get(i);
            if (before.releases && !after.releases && before.pid != after.pid) {
                millis.add((after.micros - before.micros) / 1e3);
            }
        }
        return millis;
    }

    private record Event(long pid, boolean releases, long micros) {}

    private static List<Event> log(Process process) {
        try (BufferedReader says = says(process)) {
            return says.lines()
                    .map(line -> new Event(process.pid(), line.charAt(0) == '-', Long.parseLong(line.substring(1))))
                    .toList();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static BufferedReader says(Process process) {
        return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    private Process start(Class<?> program, PeerKind kind, String label, String more) throws IOException {
        Place place = arena.place(label, 2, LEASE, arena.database().url());
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-Dlogging.level.root=OFF",
                        "-cp",
                        System.getProperty("java.class.path"),
                        program.getName(),
                        kind.name(),
                        place.url(),
                        place.username(),
                        place.password(),
                        label,
                        more)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private static Peer open(String[] arguments) {
        Benchmarks.quiet();
        return PeerKind.valueOf(arguments[0])
                .open(new Place(arguments[1], arguments[2], arguments[3], arguments[4], 2, LEASE));
    }

    /** Takes a lock and keeps it until it is killed. */
    static final class Holder {

        private Holder() {}

        public static void main(String[] arguments) throws Exception {
            Peer peer = open(arguments);
            Peer.Held held = peer.lock(arguments[5]);
            System.out.println("held");
            TimeUnit.MINUTES.sleep(10);
            held.unlock();
            System.exit(1);
        }
    }

    /** One of the two that give a lock to each other. */
    static final class Alternating {

        private Alternating() {}

        public static void main(String[] arguments) throws Exception {
            int times = Integer.parseInt(arguments[5]);
            String[] events = new String[2 * times];
            try (Peer peer = open(arguments)) {
                for (int i = 0; i < times; i++) {
                    Peer.Held held = peer.lock("handed over");
                    events[2 * i] = "+" + now();
                    // Long enough for the other one to be waiting, and not in step with anybody's poll
                    TimeUnit.MILLISECONDS.sleep(10 + ThreadLocalRandom.current().nextInt(20));
                    events[2 * i + 1] = "-" + now();
                    held.unlock();
                    TimeUnit.MILLISECONDS.sleep(5);
                }
            }
            Arrays.stream(events).forEach(System.out::println);
            System.out.flush();
            System.exit(0);
        }

        private static long now() {
            return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        }
    }
}
