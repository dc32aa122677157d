package dev.pglock.jdbc;

import java.sql.SQLException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** What fails by the bad luck of a moment, and is sent again a few times after a pause of random length. */
public final class Conflicts {

    private static final int ATTEMPTS = 5;
    private static final long LEAST_PAUSE = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long GREATEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(20);

    private int failures;

    /** Begins to count for a piece of work. */
    public Conflicts() {}

    /**
     * Whether the same may be sent again, on the same session: after a serialization failure or a deadlock, and where the
     * session has lost a prepared statement, which the driver then prepares anew. If so, this blocks for some milliseconds.
     *
     * @param failure of the last attempt
     * @return false if it is to be reported
     */
    public boolean mayPass(SQLException failure) {
        SqlStates.Kind kind = SqlStates.kindOf(failure);
        return (kind == SqlStates.Kind.CONFLICT || kind == SqlStates.Kind.STALE_STATEMENT) && isWorthAnotherTry();
    }

    boolean isWorthAnotherTry() {
        if (++failures == ATTEMPTS) {
            return false;
        }
        LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(LEAST_PAUSE, GREATEST_PAUSE));
        return true;
    }
}
