package dev.pglock.autoconfigure;

import dev.pglock.jdbc.BorrowedConnections;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import java.util.function.Supplier;
import javax.sql.DataSource;

/** Where the locks' connections come from. */
sealed interface LockConnections {

    /** Which bean or property leads there, for people. */
    String origin();

    /** Opens no connection yet. */
    ConnectionSource open(SessionSettings settings, int poolSize);

    /**
     * Connections of our own.
     *
     * @param specs asked for each new connection
     * @param origin for people
     */
    record Own(Supplier<ConnectionSpec> specs, String origin) implements LockConnections {

        @Override
        public ConnectionSource open(SessionSettings settings, int poolSize) {
            return new OwnConnections(new SessionFactory(specs, settings), poolSize);
        }
    }

    /**
     * Connections of the application.
     *
     * @param lender never one that takes part in the caller's transaction
     * @param origin for people
     */
    record Borrowed(DataSource lender, String origin) implements LockConnections {

        @Override
        public ConnectionSource open(SessionSettings settings, int poolSize) {
            return new BorrowedConnections(lender, settings.timeouts());
        }
    }
}
