package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What happens after a failure, for every source of connections: the one place where it is decided. */
abstract class RecoveringSource implements ConnectionSource {

    private static final Logger log = LoggerFactory.getLogger(RecoveringSource.class);

    /** A connection on loan, ready for work. Exactly one of the two ways back is taken. */
    interface Loan {

        Connection connection();

        /** Commits what is not committed and gives the connection back. A failure is one of the work: it may be redone. */
        void giveBack() throws SQLException;

        /** Gives back a connection on which the work failed, or gets rid of it. Never throws. */
        void discard(boolean unusable);
    }

    /**
     * Lends a connection.
     *
     * @param fresh not one that was opened before
     * @param budget of the whole piece of work. All of it may be spent on waiting for a connection that others use; for what
     *     comes then, see {@link #ofAttempt}
     */
    abstract Loan lend(Lane lane, boolean fresh, Budget budget) throws SQLException;

    /**
     * The limit of whatever is read from the server until the way back. The first attempt leaves time for another: it may
     * be sent into a connection that is dead.
     */
    static Budget ofAttempt(boolean fresh, Budget whole) {
        return fresh ? whole : whole.half();
    }

    /** Whether a failure to lend says nothing about the next try: what is lent was opened by somebody else, long ago. */
    abstract boolean lendsWhatMayBeBroken();

    @Override
    public final <T extends @Nullable Object> T run(Lane lane, Duration duration, SqlWork<T> work) throws SQLException {
        // A release must get through although its thread has been interrupted, and a virtual thread that is interrupted
        // inside a socket read loses the socket.
        try (DeferredInterrupt interrupt = new DeferredInterrupt()) {
            return recovering(lane, Budget.of(duration), work, interrupt);
        }
    }

    private <T extends @Nullable Object> T recovering(
            Lane lane, Budget budget, SqlWork<T> work, DeferredInterrupt interrupt) throws SQLException {
        boolean fresh = false;
        boolean unanswered = false;
        Conflicts conflicts = new Conflicts();
        while (true) {
            boolean ignored = interrupt.take();
            Attempt<T> attempt = new Attempt<>(work, unanswered);
            try {
                return attempt.on(lend(lane, fresh, budget));
            } catch (SQLException e) {
                if (!attempt.begun && DeferredInterrupt.ended(e) && !budget.isUsedUp()) {
                    // A pool was asked, nothing else: once more, without the interrupt.
                    continue;
                }
                SqlStates.Kind kind = attempt.reached(e);
                switch (kind) {
                    case BROKEN, READ_ONLY, STALE_STATEMENT -> {
                        if (fresh || budget.isUsedUp() || (!attempt.begun && !lendsWhatMayBeBroken())) {
                            throw e;
                        }
                        unanswered |= attempt.begun && kind == SqlStates.Kind.BROKEN;
                        fresh = true;
                        log.debug("Trying once more on a fresh connection after: {}", e.getMessage());
                    }
                    case CONFLICT -> {
                        if (budget.isUsedUp() || !conflicts.isWorthAnotherTry()) {
                            throw e;
                        }
                    }
                    default -> throw e;
                }
            }
        }
    }

    /** One attempt, which remembers how far it came. */
    private static final class Attempt<T extends @Nullable Object> {

        private final SqlWork<T> work;
        private final boolean unanswered;
        private boolean begun;
        private boolean closed;

        Attempt(SqlWork<T> work, boolean unanswered) {
            this.work = work;
            this.unanswered = unanswered;
        }

        T on(Loan loan) throws SQLException {
            boolean done = false;
            SqlStates.Kind failure = SqlStates.Kind.OTHER;
            try {
                begun = true;
                T result = work.run(loan.connection(), unanswered);
                loan.giveBack();
                done = true;
                return result;
            } catch (SQLException e) {
                closed = loan.connection().isClosed();
                failure = reached(e);
                throw e;
            } finally {
                if (!done) {
                    loan.discard(isUnusable(failure));
                }
            }
        }

        /** A session that has ended meanwhile is broken, whatever its last words were. */
        SqlStates.Kind reached(SQLException e) {
            SqlStates.Kind kind = SqlStates.kindOf(e);
            return closed && kind == SqlStates.Kind.OTHER ? SqlStates.Kind.BROKEN : kind;
        }

        private static boolean isUnusable(SqlStates.Kind kind) {
            return switch (kind) {
                case BROKEN, READ_ONLY, STALE_STATEMENT -> true;
                default -> false;
            };
        }
    }
}
