package dev.pglock.autoconfigure;

import dev.pglock.jdbc.BorrowedConnections;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Where the locks' connections come from. */
sealed interface LockConnections {

    /** Which bean or property leads there, for people. */
    String origin();

    /** Where it is, without credentials and parameters. */
    default String database() {
        return origin();
    }

    /** Opens no connection yet. */
    ConnectionSource open(SessionSettings settings, int poolSize);

    /** What opens sessions outside every pool; null where they cannot be had. */
    @Nullable
    SessionFactory sessions(SessionSettings settings);

    /**
     * Connections of our own.
     *
     * @param specs asked for each new connection
     * @param origin for people
     */
    record Own(Supplier<ConnectionSpec> specs, String origin) implements LockConnections {

        @Override
        public String database() {
            return specs.get().url().replaceFirst("[?;].*", "").replaceFirst("//[^/]*@", "//");
        }

        @Override
        public ConnectionSource open(SessionSettings settings, int poolSize) {
            return new OwnConnections(sessions(settings), poolSize);
        }

        @Override
        public SessionFactory sessions(SessionSettings settings) {
            return new SessionFactory(specs, settings);
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

        @Override
        public @Nullable SessionFactory sessions(SessionSettings settings) {
            return null;
        }
    }
}
