package dev.pglock.advisory;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockRefusedException;
import dev.pglock.LockStorageException;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.lease.TickQuestion;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickGuard;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/** How a key is taken on a session: the one place that takes any. What the row says is asked before and after. */
final class Claims {

    private static final String OUT_OF_SHARED_MEMORY = "53200";

    /** Of a claim without an answer, while the server ends its session. */
    private static final int ATTEMPTS = 5;

    private static final Duration PAUSE = Duration.ofMillis(20);

    private final StoreIdentity identity;
    private final AdvisorySettings settings;
    private final AdvisorySql sql;
    private final RowMemory rows;
    private final KeyHolders holders;
    private final KeyDerivation keys;
    private final TickQuestion ticks = new TickQuestion();

    Claims(
            StoreIdentity identity,
            KeyDerivation keys,
            AdvisorySettings settings,
            AdvisorySql sql,
            RowMemory rows,
            KeyHolders holders) {
        this.keys = keys;
        this.identity = identity;
        this.settings = settings;
        this.sql = sql;
        this.rows = rows;
        this.holders = holders;
    }

    /**
     * To be called by whoever asks on the session, again and again if need be.
     *
     * @param id names this attempt, in case its answer gets lost
     * @param budget after which the session is given up, if it has not answered
     * @param elsewhere how many keys this replica has on other sessions
     */
    ClaimAnswer on(LockSession session, Claim claim, UUID id, Duration budget, IntSupplier elsewhere)
            throws SQLException {
        session.touch();
        return session.ask(
                budget, turn -> session.persist(connection -> claim(connection, session, claim, id, elsewhere)));
    }

    /**
     * The same attempt once more, because its session has ended without an answer. Its key is free by that, or in a moment;
     * but it may have remembered its tick before, which would then be done by nobody.
     */
    ClaimAnswer again(LockSession session, Claim claim, UUID id, Duration budget, IntSupplier elsewhere)
            throws SQLException {
        if (claim.tick() == null) {
            return on(session, claim, id, budget, elsewhere);
        }
        long until = System.nanoTime() + budget.toNanos();
        Claim withoutTick = new Claim(claim.name(), claim.key(), claim.lease(), claim.version(), claim.data());
        for (int attempt = 1; ; attempt++) {
            boolean remembered = session.ask(
                    left(until), turn -> session.persist(connection -> hasRemembered(connection, claim, id)));
            ClaimAnswer answer = on(session, remembered ? withoutTick : claim, id, left(until), elsewhere);
            if (attempt == ATTEMPTS || left(until).isNegative() || !isTaken(answer)) {
                return answer;
            }
            LockSupport.parkNanos(PAUSE.toNanos());
        }
    }

    private static Duration left(long until) {
        return Duration.ofNanos(until - System.nanoTime());
    }

    private boolean hasRemembered(Connection connection, Claim claim, UUID id) throws SQLException {
        if (!rows.isThere()) {
            return false;
        }
        try (PreparedStatement statement = connection.prepareStatement(sql.hasRememberedTick)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, claim.name());
            statement.setString(3, id.toString());
            try (ResultSet row = statement.executeQuery()) {
                return row.next();
            }
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) != SqlStates.Kind.MISSING_TABLE) {
                throw e;
            }
            return false;
        }
    }

    /** By whom may be the session that has ended, until the server has seen that. */
    private static boolean isTaken(ClaimAnswer answer) {
        return answer instanceof ClaimAnswer.Denied denied
                && (denied.denial().reason() == DenialReason.HELD
                        || denied.denial().reason() == DenialReason.KEY_BUSY);
    }

    /** The server's lock table is shared by everybody: all that takes room in it counts. */
    void refuseBeyondLimit(Claim claim, int held, int ticks, int wanted) {
        if (held + wanted <= settings.maxLocks()) {
            return;
        }
        throw new LockRefusedException("Lock '" + claim.name() + "' was not claimed: this replica holds " + held
                + " advisory locks already" + (ticks == 0 ? "" : ", of which " + ticks + " remember ticks")
                + ". Raise pglock.advisory.max-locks, with an eye on the server's max_locks_per_transaction, or use"
                + " pglock.strategy=lease, which has no such limit");
    }

    /** Our own timeouts are the only failure that is a denial. */
    static ClaimAnswer busy(Claim claim, SQLException e) {
        if (SqlStates.kindOf(e) == SqlStates.Kind.BUSY) {
            return denied(Denial.of(claim.name(), DenialReason.KEY_BUSY));
        }
        String hint = OUT_OF_SHARED_MEMORY.equals(e.getSQLState())
                ? ": the server's lock table is full, for everybody. Raise max_locks_per_transaction there, lower"
                        + " pglock.advisory.max-locks, or use pglock.strategy=lease, which takes no room in it"
                : ": " + e.getMessage();
        throw new LockStorageException("Lock '" + claim.name() + "' could not be claimed" + hint, e);
    }

    private ClaimAnswer claim(Connection connection, LockSession session, Claim claim, UUID id, IntSupplier elsewhere)
            throws SQLException {
        session.unlockWhatIsOver();
        Held left = session.held(claim.key());
        if (left != null && left.isKept()) {
            return denied(
                    new Denial(claim.name(), DenialReason.HOLD, null, left.fence(), left.left(System.nanoTime())));
        }
        if (left != null) {
            // A release of ours that failed: the engine knows that this process does not hold the name any more.
            boolean ignored = session.unlock(claim.key());
        }
        if (claim.version() != null) {
            rows.require(connection, claim.name(), "The version");
        }
        if (claim.data() != null) {
            rows.require(connection, claim.name(), "The payload");
        }
        TickGuard guard = ticks.guard(connection, claim.tick());
        TickKey tick = TickKey.of(claim.name(), guard, keys, identity.namespace());
        // Asked once: another session may see meanwhile that the table has come or gone.
        boolean withRow = rows.isThere();
        boolean second = tick != null && !withRow && session.tick(tick.key()) == null;
        refuseBeyondLimit(claim, session.size() + elsewhere.getAsInt(), session.ticksKept(), second ? 2 : 1);
        try {
            ClaimAnswer answer = withRow
                    ? claimWithRow(connection, session, claim, id, guard, tick)
                    : claimWithoutRow(connection, session, claim, tick);
            boolean again = answer instanceof ClaimAnswer.Denied denied
                    && denied.denial().reason() == DenialReason.TICK_DONE
                    && ticks.wasMistaken(claim.tick(), guard);
            return again ? claim(connection, session, claim, id, elsewhere) : answer;
        } catch (SQLException e) {
            freeAfterError(session, claim, withRow ? null : tick, e);
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE && withRow) {
                rows.isThere(false);
                return claim(connection, session, claim, id, elsewhere);
            }
            throw e;
        }
    }

    /** An error after the grant must not leave the key behind: nobody here would know of it. */
    private static void freeAfterError(LockSession session, Claim claim, @Nullable TickKey tick, SQLException failure) {
        try {
            free(session, claim.key(), tick);
        } catch (SQLException e) {
            session.leaveBehind(claim.name(), claim.key(), tick);
            failure.addSuppressed(e);
        }
    }

    private static void free(LockSession session, long key, @Nullable TickKey tick) throws SQLException {
        boolean ignored = session.unlock(key);
        if (tick != null && session.tick(tick.key()) == null) {
            ignored = session.unlock(tick.key());
        }
    }

    private ClaimAnswer claimWithRow(
            Connection connection, LockSession session, Claim claim, UUID id, TickGuard guard, @Nullable TickKey tick)
            throws SQLException {
        boolean remembered = guard.trigger() != null;
        try (PreparedStatement statement =
                connection.prepareStatement(remembered ? sql.claimTickWithRow : sql.claimWithRow)) {
            int i = 0;
            statement.setInt(++i, session.pid());
            i = setGuards(statement, i, claim, guard);
            i = setGuards(statement, i, claim, guard);
            statement.setString(++i, session.leaseMillis());
            if (remembered) {
                statement.setString(++i, identity.namespace());
                statement.setString(++i, claim.name());
                statement.setString(++i, id.toString());
                i = TickQuestion.setTick(statement, i, guard);
                i = TickQuestion.setPeriod(statement, i, guard);
            }
            return answer(connection, session, statement, claim, tick, true);
        }
    }

    private int setGuards(PreparedStatement statement, int before, Claim claim, TickGuard guard) throws SQLException {
        int i = before;
        statement.setLong(++i, claim.key());
        statement.setString(++i, identity.namespace());
        statement.setString(++i, claim.name());
        statement.setString(++i, claim.version());
        i = TickQuestion.setTick(statement, i, guard);
        return TickQuestion.setBounds(statement, i, guard);
    }

    /**
     * The tick's key may still be ours, from the last one. Then it is not taken again, which would stack; the next tick may
     * come a little sooner than it is given back.
     */
    private ClaimAnswer claimWithoutRow(Connection connection, LockSession session, Claim claim, @Nullable TickKey tick)
            throws SQLException {
        Long kept = tick == null ? null : session.tick(tick.key());
        if (tick != null
                && kept != null
                && kept - System.nanoTime() > tick.early().toNanos()) {
            return denied(Denial.of(claim.name(), DenialReason.TICK_DONE));
        }
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.CLAIM_WITHOUT_ROW)) {
            statement.setInt(1, session.pid());
            statement.setLong(2, claim.key());
            statement.setObject(3, tick == null || kept != null ? null : tick.key(), Types.BIGINT);
            statement.setLong(4, claim.key());
            statement.setString(5, settings.table().sql());
            statement.setString(6, session.leaseMillis());
            ClaimAnswer answer = answer(connection, session, statement, claim, tick, false);
            if (tick != null && answer instanceof ClaimAnswer.Granted) {
                session.keepTick(tick.key(), tick.keptUntil(kept, System.nanoTime()));
            }
            return answer;
        }
    }

    private ClaimAnswer answer(
            Connection connection,
            LockSession session,
            PreparedStatement statement,
            Claim claim,
            @Nullable TickKey tick,
            boolean withRow)
            throws SQLException {
        long sentAt = System.nanoTime();
        String got;
        Denial guarded;
        try (ResultSet row = next(statement, statement.execute())) {
            if (!row.getBoolean("same_session")) {
                session.end();
                throw LockSessions.transactionPooler();
            }
            got = row.getString("got");
            guarded = guarded(claim, row);
        }
        try (ResultSet row = next(statement, statement.getMoreResults())) {
            ticks.learn(sentAt, row);
            if ("tick".equals(got)) {
                return denied(Denial.of(claim.name(), DenialReason.TICK_DONE));
            }
            if (!"true".equals(got)) {
                return denied(guarded == null ? holders.denial(claim.name(), row) : guarded);
            }
            boolean appeared = row.getBoolean("table_there") && !withRow;
            String reason = row.getString("reason");
            if (reason != null || appeared) {
                // The row has changed, or come into being, between the look and the grant.
                rows.isThere(true);
                free(session, claim.key(), withRow ? null : tick);
                return denied(
                        Denial.of(claim.name(), reason == null ? DenialReason.UNKNOWN : DenialReason.valueOf(reason)));
            }
            return granted(connection, session, row, claim, tick, withRow);
        }
    }

    private ClaimAnswer granted(
            Connection connection,
            LockSession session,
            ResultSet row,
            Claim claim,
            @Nullable TickKey tick,
            boolean withRow)
            throws SQLException {
        Instant now = LockSession.instant(row, "now");
        Held tenure = Held.granted(claim.name(), row.getLong("fence"), now, tick);
        Long rowFence = row.getObject("row_fence", Long.class);
        // A fence that is no transaction id follows that of a row restored from elsewhere: the next one must follow
        // ours.
        boolean ahead = rowFence != null && tenure.fence() == rowFence + 1;
        // The claim has written the row itself where it remembered a tick.
        boolean written = tick != null && !tick.afterEnd() && withRow;
        if (claim.data() != null || (!written && (row.getBoolean("has_data") || ahead))) {
            rows.payload(connection, tenure, claim.data());
        }
        session.put(claim.key(), tenure);
        return new ClaimAnswer.Granted(tenure.fence(), now, now.plus(settings.lease()));
    }

    private static ResultSet next(PreparedStatement statement, boolean hasResults) throws SQLException {
        ResultSet row = hasResults ? statement.getResultSet() : null;
        if (row == null || !row.next()) {
            throw new SQLException("A claim must have an answer");
        }
        return row;
    }

    /** Denied by the row; null: not by the row. */
    private static @Nullable Denial guarded(Claim claim, ResultSet row) throws SQLException {
        String reason = row.getString("reason");
        if (reason == null) {
            return null;
        }
        Double left = row.getObject("seconds_left", Double.class);
        boolean held = reason.equals(DenialReason.HELD.name());
        return new Denial(
                claim.name(),
                DenialReason.valueOf(reason),
                held ? row.getString("holder_label") : null,
                left == null ? null : row.getObject("fence", Long.class),
                left == null ? null : Duration.ofNanos((long) (Math.max(0, left) * 1e9)));
    }

    private static ClaimAnswer denied(Denial denial) {
        return new ClaimAnswer.Denied(denial);
    }
}
