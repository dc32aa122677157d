package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.Peer;
import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.testing.TcpProxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/** What it costs once in an interval to say that all locks are still in use. */
final class Heartbeats {

    private static final List<PeerKind> PEERS =
            List.of(PeerKind.LEASE, PeerKind.ADVISORY, PeerKind.SHEDLOCK, PeerKind.SPRING_INTEGRATION);

    private final Arena arena;
    private final Settings settings;

    Heartbeats(Arena arena, Settings settings) {
        this.arena = arena;
        this.settings = settings;
    }

    void print(int... counts) throws Exception {
        Table table = new Table("locks held", "who", "statements", "milliseconds");
        for (int count : counts) {
            for (PeerKind kind : PEERS) {
                try (TcpProxy wire = TcpProxy.to(arena.server());
                        Peer peer = kind.open(arena.place(kind.name(), 2, wire))) {
                    List<Peer.Held> held = new ArrayList<>();
                    for (int i = 0; i < count; i++) {
                        held.add(Objects.requireNonNull(peer.tryLock(kind + " beats for " + count + "." + i)));
                    }
                    peer.renew(held);
                    long statements = wire.statements();
                    List<Double> millis = new ArrayList<>();
                    for (int round = 0; round < settings.rounds(); round++) {
                        long begun = System.nanoTime();
                        peer.renew(held);
                        millis.add((System.nanoTime() - begun) / 1e6);
                    }
                    table.row(
                            String.format(Locale.ROOT, "%,d", count),
                            kind.title(),
                            Table.number((double) (wire.statements() - statements) / settings.rounds()),
                            Sample.of(millis).toString());
                    for (Peer.Held one : held) {
                        one.unlock();
                    }
                }
            }
        }
        table.print("Heartbeats", "Each held lock is renewed once.");
    }
}
