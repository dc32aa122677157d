package dev.pglock.testing;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Takes all the connections that a server, a database or a role has left, until it is closed. On a server that tests share,
 * bind a role that is not a superuser first: {@code ALTER ROLE … CONNECTION LIMIT 5}.
 */
public final class ConnectionHog implements AutoCloseable {

    private static final String TOO_MANY_CONNECTIONS = "53300";

    private final List<Connection> connections = new ArrayList<>();

    private ConnectionHog() {}

    /** Opens connections as that role until no more are to be had. */
    public static ConnectionHog on(TestDatabase database, String role, String password) {
        ConnectionHog hog = new ConnectionHog();
        try {
            while (true) {
                hog.connections.add(database.direct(role, password));
            }
        } catch (IllegalStateException e) {
            if (e.getCause() instanceof SQLException sql && TOO_MANY_CONNECTIONS.equals(sql.getSQLState())) {
                return hog;
            }
            hog.close();
            throw e;
        }
    }

    /** How many it has taken. */
    public int size() {
        return connections.size();
    }

    @Override
    public void close() {
        for (Connection connection : connections) {
            try {
                connection.close();
            } catch (SQLException e) {
                // The server has ended it.
            }
        }
        connections.clear();
    }
}
