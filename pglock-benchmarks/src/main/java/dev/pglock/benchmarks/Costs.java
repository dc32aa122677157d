package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.Peer;
import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.util.Locale;
import java.util.Objects;

/** What one operation costs the database, counted: on the wire, in the log and in the tables. */
final class Costs {

    private static final int TIMES = 1000;

    private final Arena arena;

    Costs(Arena arena) {
        this.arena = arena;
    }

    private interface Work {
        void run(int call) throws Exception;
    }

    void print() throws Exception {
        Table table = new Table(
                "what", "who", "round trips", "statements", "WAL bytes", "transaction ids", "dead rows", "connections");
        for (PeerKind kind : PeerKind.values()) {
            if (kind == PeerKind.SHEDLOCK_KEEP_ALIVE) {
                continue;
            }
            try (TcpProxy wire = TcpProxy.to(arena.server());
                    Peer peer = kind.open(arena.place(kind.name(), 2, wire));
                    Peer holder = kind.open(arena.place("holder", 2))) {
                Work known = call -> held(peer, "known").unlock();
                Work fresh = call -> held(peer, "new-" + kind + call).unlock();
                for (int i = 0; i < 10; i++) {
                    known.run(i);
                }
                count(table, "acquire + release, known name", kind, wire, known);
                count(table, "acquire + release, name never seen", kind, wire, fresh);
                if (kind != PeerKind.FLOOR) {
                    Peer.Held denied = held(holder, "denied");
                    count(table, "denied attempt", kind, wire, call -> {
                        if (peer.tryLock("denied") != null) {
                            throw new IllegalStateException("Not denied");
                        }
                    });
                    denied.unlock();
                }
            }
        }
        table.print(
                "What one operation costs",
                "Counted over " + TIMES + " operations, on the wire by a proxy and in the server by its own counters.");
    }

    private static Peer.Held held(Peer peer, String name) throws Exception {
        return Objects.requireNonNull(peer.tryLock(name), "not granted");
    }

    private void count(Table table, String what, PeerKind kind, TcpProxy wire, Work work) throws Exception {
        try (Connection observer = arena.database().direct()) {
            long dead = deadRows(observer);
            long trips = wire.roundTrips();
            long statements = wire.statements();
            long wal = number(observer, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
            long ids = number(observer, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
            for (int i = 0; i < TIMES; i++) {
                work.run(i);
            }
            long idsAfter = number(observer, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
            long walAfter = number(observer, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
            table.row(
                    what,
                    kind.title(),
                    each(wire.roundTrips() - trips),
                    each(wire.statements() - statements),
                    each(walAfter - wal),
                    each(idsAfter - ids),
                    each(deadRows(observer) - dead),
                    Long.toString(number(
                            observer,
                            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%" + kind.name()
                                    + "' AND datname = current_database()")));
        }
    }

    /** The sessions tell their counts a second after they fell idle. */
    private static long deadRows(Connection observer) throws Exception {
        String sql = "SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables";
        for (long before = -1, now = number(observer, sql); ; before = now, now = number(observer, sql)) {
            if (before == now) {
                return now;
            }
            Thread.sleep(1500);
        }
    }

    private static long number(Connection observer, String sql) throws Exception {
        return Long.parseLong(Objects.requireNonNull(TestDatabase.text(observer, sql)));
    }

    private static String each(long sum) {
        return String.format(Locale.ROOT, "%.1f", (double) sum / TIMES);
    }
}
