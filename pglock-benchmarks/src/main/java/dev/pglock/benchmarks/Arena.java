package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.benchmarks.peers.Place;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.Map;

/** One server and one database with the tables of all, with the settings of a fresh PostgreSQL but for autovacuum. */
final class Arena implements AutoCloseable {

    static final Duration LEASE = Duration.ofSeconds(30);

    /** Nobody's commit is lost: what is embedded for tests is less careful. */
    private static final Map<String, String> DURABLE = Map.of("fsync", "on", "synchronous_commit", "on");

    private final PostgresServer server = PostgresServer.dedicated(DURABLE);
    private final TestDatabase database = server.newDatabase();

    Arena() {
        database.execute(PeerKind.schema());
    }

    PostgresServer server() {
        return server;
    }

    TestDatabase database() {
        return database;
    }

    Place place(String label, int connections) {
        return place(label, connections, LEASE, database.url());
    }

    Place place(String label, int connections, TcpProxy wire) {
        return place(label, connections, LEASE, database.url(wire));
    }

    Place place(String label, int connections, Duration lease, String url) {
        return new Place(url, database.username(), database.password(), label, connections, lease);
    }

    @Override
    public void close() {
        database.close();
        server.close();
    }
}
