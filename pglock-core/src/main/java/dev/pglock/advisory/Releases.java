package dev.pglock.advisory;

import dev.pglock.jdbc.SqlStates;
import dev.pglock.store.Release;
import java.sql.Connection;
import java.sql.SQLException;

/** How a tenure ends on its session: what is to be remembered first, then its key is given back, or kept. */
record Releases(AdvisorySettings settings, RowMemory rows) {

    /** True: the tenure was still ours. */
    boolean on(LockSession session, Release release) throws SQLException {
        session.touch();
        return session.ask(settings.timeouts().work(), turn -> inTurn(session, release));
    }

    private boolean inTurn(LockSession session, Release release) throws SQLException {
        Held tenure = session.held(release.key());
        if (tenure == null || tenure.fence() != release.fence()) {
            return false;
        }
        // From now on the keys are only waiting to be given back, whatever goes wrong here.
        session.put(release.key(), tenure.over());
        session.endTick(tenure);
        if (tenure.isKept()) {
            // Lost before, and its body has ended only now: nobody needs to wait any longer.
            boolean ignored = session.unlock(release.key());
            return false;
        }
        return session.persist(connection -> endPatiently(connection, session, tenure, release));
    }

    /** Whoever has the row locked, or a statement that was cancelled, does not make it forget what it is to remember. */
    private boolean endPatiently(Connection connection, LockSession session, Held tenure, Release release)
            throws SQLException {
        try {
            return end(connection, session, tenure, release);
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) != SqlStates.Kind.BUSY || session.held(release.key()) == null) {
                throw e;
            }
            return end(connection, session, tenure, release);
        }
    }

    private boolean end(Connection connection, LockSession session, Held tenure, Release release) throws SQLException {
        boolean memorable = release.minHold() != null || release.completed() != null || tenure.endCounts();
        if (memorable && remember(connection, tenure, release)) {
            session.dropTick(tenure);
            boolean ours = session.unlock(release.key());
            session.unlockWhatIsOver();
            return ours;
        }
        if (release.completed() != null) {
            try {
                rows.require(connection, release.name(), "The version");
            } finally {
                boolean ignored = session.unlock(release.key());
            }
        }
        if (release.minHold() != null) {
            Held kept = tenure.keptFor(release.minHold());
            if (!kept.isOver(System.nanoTime())) {
                session.keep(release.key(), kept);
                return true;
            }
        }
        boolean ours = session.unlock(release.key());
        // A delay of nothing is over at once.
        session.unlockWhatIsOver();
        return ours;
    }

    /** False: there is no table, or not any more. */
    private boolean remember(Connection connection, Held tenure, Release release) throws SQLException {
        if (!rows.isThere(connection)) {
            return false;
        }
        try {
            rows.end(connection, tenure, release);
            return true;
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) != SqlStates.Kind.MISSING_TABLE) {
                throw e;
            }
            rows.isThere(false);
            return false;
        }
    }
}
