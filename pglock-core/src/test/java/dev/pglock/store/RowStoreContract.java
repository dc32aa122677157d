package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockState;
import dev.pglock.RunOutcome;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.RenewalAnswer.Result;
import java.time.Duration;
import java.util.List;
import org.assertj.core.data.TemporalUnitOffset;
import org.junit.jupiter.api.Test;

/** What stores promise besides that keep every lock in a row, with an expiry of its own. */
public abstract class RowStoreContract extends LockStoreContract {

    private static final TemporalUnitOffset A_BIT = within(1, java.time.temporal.ChronoUnit.SECONDS);

    @Test
    void aDenialTellsWhoHoldsTheLockAndForHowLong() {
        ClaimAnswer.Granted granted = granted(a, "job");

        Denial denial = denied(b, "job");

        assertThat(denial.reason()).isEqualTo(DenialReason.HELD);
        assertThat(denial.name()).isEqualTo("job");
        assertThat(denial.holder()).isEqualTo("A");
        assertThat(denial.fence()).isEqualTo(granted.fence());
        assertThat(denial.expiresIn()).isBetween(Duration.ofMillis(1), LEASE);
    }

    @Test
    void aRenewedTenureLastsLonger() {
        ClaimAnswer.Granted granted = granted(a, "job");

        RenewalAnswer answer = renew(a, "job", granted, LEASE.plusSeconds(5));

        assertThat(answer.result()).isEqualTo(Result.RENEWED);
        assertThat(answer.name()).isEqualTo("job");
        assertThat(answer.fence()).isEqualTo(granted.fence());
        assertThat(answer.expiresAt()).isAfterOrEqualTo(granted.expiresAt().plusSeconds(5));
        assertThat(denied(b, "job").expiresIn()).isGreaterThan(LEASE);
    }

    @Test
    void aRenewalNeverShortensATenure() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(renew(a, "job", granted, SHORT).expiresAt()).isEqualTo(granted.expiresAt());
    }

    @Test
    void oneRenewalAnswersForEachOfMany() {
        ClaimAnswer.Granted first = granted(a, "first");
        ClaimAnswer.Granted released = granted(a, "released");
        release(a, "released", released);
        ClaimAnswer.Granted expired = granted(a, claim("expired", SHORT));
        awaitState("expired", LockState.EXPIRED);
        ClaimAnswer.Granted second = granted(a, "second");

        List<RenewalAnswer> answers = a.renew(
                List.of(
                        renewal("first", first.fence(), LEASE),
                        renewal("released", released.fence(), LEASE),
                        renewal("expired", expired.fence(), LEASE),
                        renewal("never seen", 1, LEASE),
                        renewal("second", second.fence(), LEASE.plusSeconds(7))),
                BUDGET,
                Caller.HEARTBEAT);

        assertThat(answers)
                .extracting(RenewalAnswer::name, RenewalAnswer::result)
                .containsExactlyInAnyOrder(
                        org.assertj.core.groups.Tuple.tuple("first", Result.RENEWED),
                        org.assertj.core.groups.Tuple.tuple("released", Result.LOST),
                        org.assertj.core.groups.Tuple.tuple("expired", Result.LOST),
                        org.assertj.core.groups.Tuple.tuple("never seen", Result.LOST),
                        org.assertj.core.groups.Tuple.tuple("second", Result.RENEWED));
    }

    @Test
    void anExpiredTenureIsLostEvenIfNobodyHasTakenItOver() {
        ClaimAnswer.Granted granted = granted(a, claim("job", SHORT));
        awaitState("job", LockState.EXPIRED);

        assertThat(renew(a, "job", granted, LEASE).result()).isEqualTo(Result.LOST);
        assertThat(a.find("job")).map(LockInfo::state).contains(LockState.EXPIRED);
    }

    @Test
    void anExpiredTenureThatNobodyTookIsStillReleased() {
        ClaimAnswer.Granted granted = granted(a, claim("job", SHORT));
        awaitState("job", LockState.EXPIRED);

        assertThat(release(a, "job", granted)).isTrue();
        assertThat(a.find("job")).map(LockInfo::state).contains(LockState.FREE);
    }

    @Test
    void theLastRunIsTold() {
        ClaimAnswer.Granted granted = granted(a, "job");
        assertThat(a.find("job").orElseThrow().lastRun()).isNull();

        a.release(released("job", granted, RunOutcome.FAILED, "java.io.IOException", null, null));
        granted(b, "job");

        LastRun run = b.find("job").orElseThrow().lastRun();
        assertThat(run).isNotNull();
        assertThat(run.holder()).isEqualTo("A");
        assertThat(run.startedAt()).isEqualTo(granted.acquiredAt());
        assertThat(run.finishedAt()).isAfterOrEqualTo(granted.acquiredAt()).isCloseTo(granted.acquiredAt(), A_BIT);
        assertThat(run.outcome()).isEqualTo(RunOutcome.FAILED);
        assertThat(run.error()).isEqualTo("java.io.IOException");
    }

    @Test
    void findTellsTheState() {
        ClaimAnswer.Granted granted = granted(a, "job");
        LockInfo held = b.find("job").orElseThrow();
        assertThat(held.state()).isEqualTo(LockState.HELD);
        assertThat(held.strategy()).isEqualTo(b.strategy());
        assertThat(held.holder()).isEqualTo("A");
        assertThat(held.fence()).isEqualTo(granted.fence());
        assertThat(held.acquiredAt()).isEqualTo(granted.acquiredAt());
        assertThat(held.expiresAt()).isEqualTo(granted.expiresAt());

        release(a, "job", granted);
        LockInfo free = b.find("job").orElseThrow();
        assertThat(free.state()).isEqualTo(LockState.FREE);
        assertThat(free.holder()).isNull();
        assertThat(free.expiresAt()).isNull();
        assertThat(free.fence()).isEqualTo(granted.fence());

        granted(a, claim("job", SHORT));
        awaitState("job", LockState.EXPIRED);
        assertThat(b.find("job").orElseThrow().holder()).isEqualTo("A");
    }

    @Test
    void findAllTellsAllByName() {
        granted(a, "b");
        granted(b, "a");
        granted(a, "c");

        assertThat(a.findAll()).extracting(LockInfo::name).containsExactly("a", "b", "c");
    }

    @Test
    void aForcedReleaseKeepsOthersOutUntilTheHoldersTrustHasEnded() {
        ClaimAnswer.Granted granted = granted(a, claim("job", Duration.ofMillis(600)));

        assertThat(b.forceRelease("job", key("job"), false)).isTrue();

        assertThat(denied(b, "job").reason()).isEqualTo(DenialReason.HOLD);
        assertThat(renew(a, "job", granted, LEASE).result()).isEqualTo(Result.LOST);
        assertThat(release(a, "job", granted)).isFalse();
        ClaimAnswer.Granted next = grantedInTheEnd(b, claim("job", LEASE));
        assertThat(next.acquiredAt()).isAfterOrEqualTo(granted.expiresAt());
        assertThat(next.fence()).isGreaterThan(granted.fence());
    }

    @Test
    void whatHasExpiredCannotBeForced() {
        granted(a, claim("job", SHORT));
        awaitState("job", LockState.EXPIRED);

        assertThat(a.forceRelease("job", key("job"), false)).isFalse();
    }
}
