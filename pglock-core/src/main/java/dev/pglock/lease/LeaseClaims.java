package dev.pglock.lease;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickGuard;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** The claims of one replica: how they are asked, what the answers say, and which fences are its own. Thread-safe. */
final class LeaseClaims {

    private static final int ASKED_AT_MOST = 3;

    private final StoreIdentity identity;

    /**
     * The greatest fence that was ever granted to us. Fences of different names are comparable enough, since nearly all of
     * them are transaction ids: see {@link LeaseSql} for what it guards.
     */
    private final AtomicLong ownFence = new AtomicLong();

    private final TickQuestion ticks = new TickQuestion();

    LeaseClaims(StoreIdentity identity) {
        this.identity = identity;
    }

    long ownFence() {
        return ownFence.get();
    }

    /** Asks the row; and again where another look tells more. */
    ClaimAnswer claim(Connection connection, LeaseSql sql, Claim claim) throws SQLException {
        for (int asked = 1; ; asked++) {
            TickGuard tick = ticks.guard(connection, claim.tick());
            Verdict verdict = ask(connection, claim.tick() == null ? sql.claim : sql.claimTick, claim, tick, true);
            if (verdict == null) {
                verdict = ask(connection, sql.claimNew, claim, tick, false);
            }
            if (verdict == null) {
                throw new SQLException("A claim must have an answer");
            }
            // What is left of a claim of ours whose answer never came is in the way only until we know its fence, and a
            // race that was lost is told better by another look.
            boolean again = verdict.ours()
                    || verdict.is(DenialReason.UNKNOWN)
                    || (verdict.is(DenialReason.TICK_DONE) && ticks.wasMistaken(claim.tick(), tick));
            if (verdict.ours()) {
                know(verdict.fence());
            }
            if (!again || asked == ASKED_AT_MOST) {
                return answer(claim, verdict);
            }
        }
    }

    private @Nullable Verdict ask(Connection connection, String sql, Claim claim, TickGuard tick, boolean known)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            int i = 0;
            statement.setString(++i, identity.namespace());
            statement.setString(++i, claim.name());
            statement.setLong(++i, claim.key());
            statement.setObject(++i, identity.holder());
            statement.setString(++i, identity.label());
            if (known) {
                statement.setLong(++i, ownFence.get());
            }
            statement.setDouble(++i, LeaseStore.seconds(claim.lease()));
            statement.setString(++i, claim.data());
            if (known) {
                statement.setString(++i, claim.version());
            }
            if (!known || claim.tick() != null) {
                i = TickQuestion.setTick(statement, i, tick);
            }
            if (known && claim.tick() != null) {
                i = TickQuestion.setBounds(statement, i, tick);
                i = TickQuestion.setPeriod(statement, i, tick);
            }
            long sentAt = System.nanoTime();
            try (ResultSet row = statement.executeQuery()) {
                if (!row.next()) {
                    return null;
                }
                ticks.learn(sentAt, row);
                return Verdict.read(row);
            }
        }
    }

    /**
     * A row of the answer to a claim.
     *
     * @param ours denied by a tenure that bears our own name
     */
    private record Verdict(
            String answer,
            @Nullable Long fence,
            @Nullable Instant acquiredAt,
            @Nullable Instant expiresAt,
            @Nullable String holder,
            @Nullable Duration left,
            boolean ours) {

        boolean is(DenialReason reason) {
            return answer.equals(reason.name());
        }

        static Verdict read(ResultSet row) throws SQLException {
            return new Verdict(
                    row.getString("answer"),
                    row.getObject("fence", Long.class),
                    LeaseRows.instant(row, "acquired_at"),
                    LeaseRows.instant(row, "expires_at"),
                    row.getString("holder_label"),
                    left(row.getObject("seconds_left", Double.class)),
                    row.getBoolean("ours"));
        }

        private static @Nullable Duration left(@Nullable Double seconds) {
            return seconds == null ? null : Duration.ofNanos((long) (Math.max(0, seconds) * 1e9));
        }
    }

    private ClaimAnswer answer(Claim claim, Verdict verdict) {
        if (verdict.fence() != null && verdict.acquiredAt() != null && verdict.expiresAt() != null) {
            know(verdict.fence());
            return new ClaimAnswer.Granted(verdict.fence(), verdict.acquiredAt(), verdict.expiresAt());
        }
        DenialReason reason = DenialReason.valueOf(verdict.answer());
        boolean held = reason == DenialReason.HELD;
        return new ClaimAnswer.Denied(new Denial(
                claim.name(),
                reason,
                held ? verdict.holder() : null,
                held || reason == DenialReason.HOLD ? verdict.fence() : null,
                verdict.left()));
    }

    /** After a claim without an answer: what it was granted, if it was, with a fence beyond what was known before it. */
    ClaimAnswer.@Nullable Granted adopt(Connection connection, LeaseSql sql, Claim claim, long knownBefore)
            throws SQLException {
        TickGuard tick = ticks.guard(connection, claim.tick());
        try (PreparedStatement statement = connection.prepareStatement(sql.adopt)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, claim.name());
            statement.setObject(3, identity.holder());
            statement.setLong(4, knownBefore);
            statement.setDouble(5, LeaseStore.seconds(claim.lease()));
            statement.setString(6, claim.data());
            statement.setString(7, claim.version());
            int ignored = TickQuestion.setBounds(statement, TickQuestion.setTick(statement, 7, tick), tick);
            try (ResultSet row = statement.executeQuery()) {
                if (!row.next()) {
                    return null;
                }
                long fence = row.getLong("fence");
                know(fence);
                return new ClaimAnswer.Granted(
                        fence, requiredInstant(row, "acquired_at"), requiredInstant(row, "expires_at"));
            }
        }
    }

    private void know(@Nullable Long fence) {
        if (fence != null) {
            ownFence.accumulateAndGet(fence, Math::max);
        }
    }

    private static Instant requiredInstant(ResultSet row, String column) throws SQLException {
        Instant instant = LeaseRows.instant(row, column);
        if (instant == null) {
            throw new SQLException("Column " + column + " must not be null");
        }
        return instant;
    }
}
