package dev.pglock.benchmarks;

import dev.pglock.benchmarks.peers.PeerKind;
import dev.pglock.benchmarks.peers.Place;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;

/** One server and one database with the tables of all, with the settings of a fresh PostgreSQL but for autovacuum. */
final class Arena implements AutoCloseable {

    static final Duration LEASE = Duration.ofSeconds(30);

    private final PostgresServer server = PostgresServer.dedicated("fsync", "on");
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
