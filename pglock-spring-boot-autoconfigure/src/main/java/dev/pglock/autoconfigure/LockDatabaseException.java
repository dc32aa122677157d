package dev.pglock.autoconfigure;

import dev.pglock.LockStorageException;
import java.sql.SQLException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Locks are needed, and there is no database that could keep them. */
final class LockDatabaseException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    private static final String WAYS_OUT = "Without PostgreSQL, in tests for instance, keep the locks in memory"
            + " (pglock.strategy=local) or run the methods unlocked (pglock.enabled=false).";

    private static final String CHOICE = """
            Say which one with @PgLockDataSource:

                @Bean(defaultCandidate = false)
                @PgLockDataSource
                DataSource lockDataSource() { … }

            Leave out 'defaultCandidate = false' where the application uses it as well. Or set pglock.datasource.url.""";

    private final String action;

    private LockDatabaseException(String message, String action, @Nullable Throwable cause) {
        super(message, cause);
        this.action = action;
    }

    static LockDatabaseException missing() {
        return new LockDatabaseException(
                "Methods or callers need locks, but there is no DataSource bean, and 'pglock.datasource.url' is not set.",
                "Set spring.datasource.url or pglock.datasource.url. " + WAYS_OUT,
                null);
    }

    static LockDatabaseException ambiguous(List<String> names) {
        return new LockDatabaseException(
                "Locks need one database, but there are several DataSource beans and none of them is the primary one: "
                        + quoted(names) + ".",
                CHOICE,
                null);
    }

    static LockDatabaseException ambiguousChoice(List<String> names) {
        return new LockDatabaseException(
                "Locks need one database, but several DataSource beans are marked with @PgLockDataSource: "
                        + quoted(names) + ".",
                "Leave the annotation on one of them.",
                null);
    }

    static LockDatabaseException routing(String name) {
        return new LockDatabaseException(
                "The DataSource bean '" + name + "' is a routing one: it leads to another database according to the"
                        + " thread that asks. A lock taken in one database and released in another excludes nobody.",
                CHOICE,
                null);
    }

    static LockDatabaseException notPostgres(String origin, String product) {
        return new LockDatabaseException(
                "Locks are kept in PostgreSQL, but " + origin + " leads to " + product + ".",
                "Use a real PostgreSQL, in tests with Testcontainers for instance, or lead pglock.datasource.url to one. "
                        + WAYS_OUT,
                null);
    }

    static LockDatabaseException unusableUrl(String origin) {
        return new LockDatabaseException(
                "The JDBC URL of the locks' database (" + origin + ") is understood by no driver.",
                "Write it as jdbc:postgresql://host:port/database. It is not shown here because it may hold a password.",
                null);
    }

    /** A lock session must not be lent, and not be pooled. */
    static LockDatabaseException advisoryNeedsOwnSession(String origin) {
        return new LockDatabaseException(
                "Advisory locks live on a session of their own, but connections can only be borrowed from " + origin
                        + ".",
                "Set pglock.datasource.url (with username and password), use a HikariCP pool whose configuration can be"
                        + " copied, or set pglock.strategy=lease.",
                null);
    }

    /** What the database lacks is said by whoever has looked. */
    static LockDatabaseException unsupported(String origin, LockStorageException cause) {
        return new LockDatabaseException(
                cause.getMessage() + " (" + origin + ")",
                "Use a supported PostgreSQL, in tests with Testcontainers for instance, or lead pglock.datasource.url to"
                        + " one. " + WAYS_OUT,
                cause);
    }

    static LockDatabaseException unreachable(String origin, Throwable cause) {
        return new LockDatabaseException(
                "The database of the locks (" + origin + ") cannot be reached: " + driversWords(cause),
                "Check that the database is up and that URL and credentials are right. With"
                        + " pglock.lease.initialize-schema=never the application starts without it, and locks nothing"
                        + " until it is back.",
                cause);
    }

    /** A pool reports that it has no connection; why is said by the driver, further down. */
    static @Nullable String driversWords(Throwable failure) {
        String words = failure.getMessage();
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof SQLException && t.getMessage() != null) {
                words = t.getMessage();
            }
        }
        return words;
    }

    String action() {
        return action;
    }

    private static String quoted(List<String> names) {
        return "'" + String.join("', '", names) + "'";
    }
}
