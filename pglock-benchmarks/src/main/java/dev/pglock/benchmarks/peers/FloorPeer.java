package dev.pglock.benchmarks.peers;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** What two round trips cost at least: one trivial statement for the lock and one for its release, on an open connection. */
final class FloorPeer implements Peer {

    private final Place place;
    private final Queue<Connection> opened = new ConcurrentLinkedQueue<>();
    private final ThreadLocal<PreparedStatement> statements = ThreadLocal.withInitial(this::open);

    FloorPeer(Place place) {
        this.place = place;
    }

    private PreparedStatement open() {
        try {
            Connection connection = place.connect();
            opened.add(connection);
            return connection.prepareStatement("SELECT 1");
        } catch (SQLException e) {
            throw new IllegalStateException("No connection", e);
        }
    }

    @Override
    public Held tryLock(String name) throws SQLException {
        select();
        return this::select;
    }

    @Override
    public Held lock(String name) throws SQLException {
        return tryLock(name);
    }

    private void select() throws SQLException {
        statements.get().executeQuery().close();
    }

    @Override
    public void renew(List<Held> held) throws SQLException {
        select();
    }

    @Override
    public void close() throws SQLException {
        for (Connection connection : opened) {
            connection.close();
        }
    }
}
