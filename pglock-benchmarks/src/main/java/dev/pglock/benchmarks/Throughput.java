package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.Peer;
import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.benchmarks.peers.Place;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;

/** Operations per second, in rounds in which everybody has its turn, each round in another order. */
final class Throughput {

    private static final List<PeerKind> PEERS =
            List.of(PeerKind.FLOOR, PeerKind.LEASE, PeerKind.ADVISORY, PeerKind.SHEDLOCK, PeerKind.SPRING_INTEGRATION);

    /** What a thread does over and over. */
    private enum Scenario {
        KNOWN("acquire + release, known name") {
            @Override
            boolean once(Peer peer, PeerKind kind, int thread) throws Exception {
                return takenAndGivenBack(peer, "known-" + thread);
            }
        },
        FRESH("acquire + release, name never seen") {
            @Override
            boolean once(Peer peer, PeerKind kind, int thread) throws Exception {
                return takenAndGivenBack(peer, "fresh-" + COUNT.incrementAndGet());
            }
        },
        DENIED("denied attempt") {
            @Override
            boolean once(Peer peer, PeerKind kind, int thread) throws Exception {
                Peer.Held ignored = peer.tryLock("held-" + kind + thread);
                return true;
            }
        };

        private static final AtomicLong COUNT = new AtomicLong();
        private final String title;

        Scenario(String title) {
            this.title = title;
        }

        /** False if a lock that nobody else wants was not granted. */
        abstract boolean once(Peer peer, PeerKind kind, int thread) throws Exception;

        private static boolean takenAndGivenBack(Peer peer, String name) throws Exception {
            Peer.Held held = peer.tryLock(name);
            if (held != null) {
                held.unlock();
            }
            return held != null;
        }
    }

    /** How often a lock that was free was not granted. */
    private final Map<PeerKind, AtomicLong> refused = new ConcurrentHashMap<>();

    private final Settings settings;
    private final BiFunction<String, Integer, Place> places;

    Throughput(Settings settings, BiFunction<String, Integer, Place> places) {
        this.settings = settings;
        this.places = places;
    }

    void print(String title, String explanation, int... threadCounts) throws Exception {
        Table table = new Table("what", "threads", "who", "per second", "times ShedLock", "in units of the floor");
        for (Scenario scenario : Scenario.values()) {
            for (int threads : threadCounts) {
                Map<PeerKind, List<Double>> rates = measure(scenario, threads);
                rates.forEach((kind, measured) -> table.row(
                        scenario.title,
                        Integer.toString(threads),
                        kind.title(),
                        Sample.of(measured).toString(),
                        ratio(measured, rates.getOrDefault(PeerKind.SHEDLOCK, List.of())),
                        ratio(rates.getOrDefault(PeerKind.FLOOR, List.of()), measured)));
            }
        }
        table.print(title, explanation);
        refused.forEach((kind, times) -> System.out.printf(
                Locale.ROOT,
                "%s refused a lock that was free %,d times; that is not counted as done.%n%n",
                kind.title(),
                times.get()));
    }

    /** Round by round, so that what disturbed a round disturbs both. */
    private static String ratio(List<Double> some, List<Double> others) {
        List<Double> ratios = new ArrayList<>();
        for (int i = 0; i < Math.min(some.size(), others.size()); i++) {
            ratios.add(some.get(i) / others.get(i));
        }
        return ratios.isEmpty() ? "" : Sample.of(ratios).toString();
    }

    private Map<PeerKind, List<Double>> measure(Scenario scenario, int threads) throws Exception {
        Map<PeerKind, List<Double>> rates = new EnumMap<>(PeerKind.class);
        Map<PeerKind, Peer> peers = new EnumMap<>(PeerKind.class);
        List<Peer> holders = new ArrayList<>();
        List<Peer.Held> taken = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            for (PeerKind kind : PEERS) {
                peers.put(kind, kind.open(places.apply(kind.name(), threads + 1)));
                if (scenario == Scenario.DENIED) {
                    Peer holder = kind.open(places.apply("holder", 2));
                    holders.add(holder);
                    for (int thread = 0; thread < threads; thread++) {
                        taken.add(Objects.requireNonNull(holder.tryLock("held-" + kind + thread)));
                        if (kind != PeerKind.FLOOR && peer(peers, kind).tryLock("held-" + kind + thread) != null) {
                            throw new IllegalStateException("Not denied");
                        }
                    }
                }
            }
            List<PeerKind> order = new ArrayList<>(PEERS);
            for (PeerKind kind : order) {
                rate(pool, peer(peers, kind), kind, scenario, threads);
            }
            for (int round = 0; round < settings.rounds(); round++) {
                Collections.rotate(order, 1);
                for (PeerKind kind : order) {
                    rates.computeIfAbsent(kind, key -> new ArrayList<>())
                            .add(rate(pool, peer(peers, kind), kind, scenario, threads));
                }
            }
        } finally {
            pool.shutdownNow();
            for (Peer.Held lock : taken) {
                lock.unlock();
            }
            for (Peer peer : peers.values()) {
                peer.close();
            }
            for (Peer holder : holders) {
                holder.close();
            }
        }
        return rates;
    }

    private static Peer peer(Map<PeerKind, Peer> peers, PeerKind kind) {
        return Objects.requireNonNull(peers.get(kind));
    }

    private double rate(ExecutorService pool, Peer peer, PeerKind kind, Scenario scenario, int threads)
            throws Exception {
        long begun = System.nanoTime();
        long until = begun + settings.length().toNanos();
        List<Future<Long>> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int thread = i;
            running.add(pool.submit(() -> {
                long calls = 0;
                while (System.nanoTime() < until) {
                    if (scenario.once(peer, kind, thread)) {
                        calls++;
                    } else {
                        refused.computeIfAbsent(kind, key -> new AtomicLong()).incrementAndGet();
                    }
                }
                return calls;
            }));
        }
        long calls = 0;
        for (Future<Long> one : running) {
            calls += one.get();
        }
        return calls * 1e9 / (System.nanoTime() - begun);
    }
}
