package dev.pglock.lease;

import dev.pglock.jdbc.ConnectionSource;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Whether somebody else's connection leads to the database of the locks: a key that was taken elsewhere excludes nobody here.
 * A server is told from others by the microsecond in which it was started, which costs no look at a file and needs no right;
 * who asks for it has it in the statement that he sends anyway. Thread-safe.
 */
final class SameDatabase {

    private static final String WHERE = """
            SELECT current_database() AS database, extract(epoch FROM pg_postmaster_start_time())::text AS server
            """;

    private final ConnectionSource own;
    private final Duration budget;

    /** As of the last look; the server may have been started again since, or another may have taken its place. */
    private volatile @Nullable Place home;

    SameDatabase(ConnectionSource own, Duration budget) {
        this.own = own;
        this.budget = budget;
    }

    private record Place(String database, String server) {}

    /**
     * Refuses another database. One round trip on a connection of ours at the first call, and after a restart of the server.
     *
     * @param database the connection's {@code current_database()}
     * @param server when its server was started
     * @throws IllegalArgumentException if that is not where the locks are
     * @throws SQLException if it could not be found out where they are
     */
    void require(String database, String server) throws SQLException {
        Place place = new Place(database, server);
        Place now = home(place);
        if (!now.equals(place)) {
            throw new IllegalArgumentException("The transaction is in another database than the locks: in '" + database
                    + "', but they are in '" + now.database() + "'"
                    + (database.equals(now.database()) ? " of another server" : "")
                    + ". A lock taken there would exclude nobody here. Point pglock.datasource.* (or @PgLockDataSource) at"
                    + " the database of the transaction, or take the lock outside of it");
        }
    }

    /**
     * Tells another database, like {@link #require}.
     *
     * @param database the connection's {@code current_database()}
     * @param server when its server was started
     * @return whether that is where the locks are
     * @throws SQLException if it could not be found out where they are
     */
    boolean is(String database, String server) throws SQLException {
        Place place = new Place(database, server);
        return home(place).equals(place);
    }

    /** Looked up again unless it is the one that is hoped for. */
    private Place home(Place hoped) throws SQLException {
        if (hoped.equals(home)) {
            return hoped;
        }
        Place now = own.run(ConnectionSource.Lane.WORK, budget, (connection, unanswered) -> {
            try (PreparedStatement statement = connection.prepareStatement(WHERE);
                    ResultSet row = statement.executeQuery()) {
                row.next();
                return new Place(row.getString("database"), row.getString("server"));
            }
        });
        home = now;
        return now;
    }
}
