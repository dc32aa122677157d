package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockState;
import dev.pglock.RunOutcome;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.RenewalAnswer.Result;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What every store promises. Two stores over one storage are two replicas. */
public abstract class LockStoreContract {

    protected static final Duration LEASE = Duration.ofSeconds(2);
    protected static final Duration SHORT = Duration.ofMillis(150);
    protected static final Duration BUDGET = Duration.ofSeconds(1);

    protected final String namespace = "contract-" + UUID.randomUUID();
    private final List<LockStore> stores = new ArrayList<>();
    protected LockStore a;
    protected LockStore b;

    /** Another replica's store over the same storage. */
    protected abstract LockStore newStore(StoreIdentity identity);

    @BeforeEach
    void startTwoReplicas() {
        a = store(namespace, "A");
        b = store(namespace, "B");
    }

    @AfterEach
    void stopThem() {
        stores.forEach(LockStore::close);
    }

    protected final LockStore store(String itsNamespace, String label) {
        LockStore store = newStore(StoreIdentity.random(itsNamespace, label));
        stores.add(store);
        return store;
    }

    // ---- claim

    @Test
    void aNameNeverSeenIsGranted() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(granted.fence()).isPositive();
        assertThat(Duration.between(granted.acquiredAt(), granted.expiresAt())).isBetween(LEASE, LEASE.plusMillis(100));
    }

    @Test
    void aReleasedLockIsGrantedAtOnce() {
        release(a, "job", granted(a, "job"));

        assertThat(claim(b, "job")).isInstanceOf(ClaimAnswer.Granted.class);
    }

    @Test
    void fencesIncreaseOverReplicasReleasesAndExpiries() {
        List<Long> fences = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            LockStore store = i % 2 == 0 ? a : b;
            ClaimAnswer.Granted granted = grantedInTheEnd(store, claim("job", SHORT));
            fences.add(granted.fence());
            if (i % 3 != 0) {
                release(store, "job", granted);
            }
        }

        assertThat(fences).isSorted().doesNotHaveDuplicates();
    }

    @Test
    void anExpiredLockIsTakenOver() {
        ClaimAnswer.Granted first = granted(a, claim("job", SHORT));

        ClaimAnswer.Granted second = grantedInTheEnd(b, claim("job", LEASE));

        assertThat(second.fence()).isGreaterThan(first.fence());
        assertThat(second.acquiredAt()).isAfterOrEqualTo(first.expiresAt());
    }

    @Test
    void whatIsLeftOfAnOwnTenureIsInNobodysWay() {
        ClaimAnswer.Granted first = granted(a, "job");

        ClaimAnswer.Granted second = granted(a, "job");

        assertThat(second.fence()).isGreaterThan(first.fence());
        assertThat(denied(b, "job").holder()).isEqualTo("A");
        assertThat(release(a, "job", first)).isFalse();
        assertThat(release(a, "job", second)).isTrue();
    }

    @Test
    void namespacesAreApart() {
        LockStore other = store(namespace + "-other", "C");
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(claim(other, claimIn(namespace + "-other", "job", LEASE))).isInstanceOf(ClaimAnswer.Granted.class);
        assertThat(other.findAll()).extracting(LockInfo::holder).containsExactly("C");
        assertThat(release(a, "job", granted)).isTrue();
        assertThat(other.find("job")).map(LockInfo::state).contains(LockState.HELD);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Job", "job", "café", "😀", "x';--", "50%", "_", "a\\b", "?", "$1", ":name", "\"q\"", " x ", "a\nb"
            })
    void oddNamesAreJustNames(String name) {
        ClaimAnswer.Granted granted = granted(a, name);

        assertThat(denied(b, name).reason()).isEqualTo(DenialReason.HELD);
        assertThat(a.find(name)).map(LockInfo::name).contains(name);
        assertThat(a.findAll()).hasSize(1);
        assertThat(renew(a, name, granted, LEASE).result()).isEqualTo(Result.RENEWED);
        assertThat(release(a, name, granted)).isTrue();
    }

    @Test
    void namesDifferByCaseAndNothingIsTrimmed() {
        for (String name : List.of("job", "Job", " job", "job ")) {
            granted(a, name);
        }

        assertThat(a.findAll()).extracting(LockInfo::name).containsExactlyInAnyOrder("job", "Job", " job", "job ");
    }

    @Test
    void theLongestNameIsKeptWhole() {
        String name = "😀".repeat(127) + "x";

        granted(a, name);

        assertThat(b.find(name)).map(LockInfo::name).contains(name);
        assertThat(denied(b, name).reason()).isEqualTo(DenialReason.HELD);
    }

    // ---- renew

    @Test
    void anotherReplicaCannotRenew() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertLost(renew(b, "job", granted, LEASE));
    }

    @Test
    void nothingToRenewIsNoQuestion() {
        assertThat(a.renew(List.of(), BUDGET, Caller.HEARTBEAT)).isEmpty();
    }

    @Test
    void thePayloadComesWithTheGrantAndIsReplacedByRenewals() {
        ClaimAnswer.Granted granted = granted(a, new Claim("job", key("job"), LEASE, null, "at the grant"));
        assertThat(data("job")).isEqualTo("at the grant");

        renew(a, "job", granted, LEASE);
        assertThat(data("job")).isEqualTo("at the grant");

        a.renew(
                List.of(new Renewal("job", granted.fence(), LEASE, new Renewal.Payload("it's \u00e9 {\"a\":1}"))),
                BUDGET,
                Caller.HOLDER);
        assertThat(data("job")).isEqualTo("it's \u00e9 {\"a\":1}");

        release(a, "job", granted);
        assertThat(data("job")).as("stays until the next claim").isEqualTo("it's \u00e9 {\"a\":1}");

        ClaimAnswer.Granted next = granted(b, "job");
        assertThat(data("job")).isNull();

        b.renew(List.of(new Renewal("job", next.fence(), LEASE, new Renewal.Payload("x"))), BUDGET, Caller.HOLDER);
        b.renew(List.of(new Renewal("job", next.fence(), LEASE, new Renewal.Payload(null))), BUDGET, Caller.HOLDER);
        assertThat(data("job")).isNull();
    }

    // ---- release

    @Test
    void aLateReleaseNeverFreesTheNextHolder() {
        ClaimAnswer.Granted late = granted(a, claim("job", SHORT));
        ClaimAnswer.Granted next = grantedInTheEnd(b, claim("job", LEASE));

        assertThat(release(a, "job", late)).isFalse();

        assertThat(b.find("job")).map(LockInfo::fence).contains(next.fence());
        assertThat(denied(store(namespace, "C"), "job").holder()).isEqualTo("B");
    }

    @Test
    void anotherReplicaCannotRelease() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(release(b, "job", granted)).isFalse();
        assertThat(denied(b, "job").holder()).isEqualTo("A");
    }

    @Test
    void aSecondReleaseFindsNothing() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(release(a, "job", granted)).isTrue();
        assertThat(release(a, "job", granted)).isFalse();
        assertThat(release(a, "never seen", granted)).isFalse();
    }

    @Test
    void minHoldKeepsTheLockClosedCountedFromTheGrant() {
        ClaimAnswer.Granted granted = granted(a, "job");

        a.release(released("job", granted, RunOutcome.SUCCEEDED, null, LEASE.plusSeconds(1), null));

        for (LockStore anybody : List.of(a, b)) {
            Denial denial = denied(anybody, "job");
            assertThat(denial.reason()).isEqualTo(DenialReason.HOLD);
            assertThat(denial.holder()).isNull();
            assertThat(denial.expiresIn()).isBetween(Duration.ofMillis(1), LEASE.plusSeconds(1));
        }
        LockInfo info = a.find("job").orElseThrow();
        assertThat(info.state()).isEqualTo(LockState.HOLD);
        assertThat(info.holder()).isNull();
        assertThat(info.expiresAt()).isEqualTo(granted.acquiredAt().plus(LEASE.plusSeconds(1)));
    }

    @Test
    void aMinHoldThatIsOverKeepsNobodyOut() {
        ClaimAnswer.Granted granted = granted(a, "job");

        a.release(released("job", granted, RunOutcome.SUCCEEDED, null, SHORT, null));

        assertThat(grantedInTheEnd(b, claim("job", LEASE)).acquiredAt())
                .isAfterOrEqualTo(granted.acquiredAt().plus(SHORT));
    }

    @Test
    void aVersionThatSucceededIsDone() {
        ClaimAnswer.Granted granted = granted(a, versioned("1"));
        a.release(released("job", granted, RunOutcome.SUCCEEDED, null, null, "1"));

        assertThat(denied(b, versioned("1")).reason()).isEqualTo(DenialReason.DONE);
        assertThat(denied(a, versioned("1")).reason()).isEqualTo(DenialReason.DONE);

        ClaimAnswer.Granted other = granted(b, versioned("2"));
        b.release(released("job", other, RunOutcome.SUCCEEDED, null, null, "2"));
        assertThat(denied(a, versioned("1")).reason()).isEqualTo(DenialReason.DONE);
        assertThat(denied(a, versioned("2")).reason()).isEqualTo(DenialReason.DONE);
        granted(a, "job");
    }

    @Test
    void aRunThatFailedIsNotRemembered() {
        ClaimAnswer.Granted granted = granted(a, versioned("1"));
        a.release(released("job", granted, RunOutcome.FAILED, "java.io.IOException", null, null));

        granted(b, versioned("1"));
    }

    // ---- find

    @Test
    void aNameNeverSeenIsNotFound() {
        assertThat(a.find("job")).isEmpty();
        assertThat(a.findAll()).isEmpty();
    }

    // ---- force

    @Test
    void aForcedReleaseAtOnceLetsOthersInAtOnce() {
        ClaimAnswer.Granted granted = granted(a, "job");

        assertThat(b.forceRelease("job", key("job"), true)).isTrue();

        ClaimAnswer.Granted next = granted(b, "job");
        assertThat(next.fence()).isGreaterThan(granted.fence());
        assertLost(renew(a, "job", granted, LEASE));
        assertThat(release(a, "job", granted)).isFalse();
        assertThat(b.find("job")).map(LockInfo::holder).contains("B");
    }

    @Test
    void whatNobodyHoldsCannotBeForced() {
        assertThat(a.forceRelease("never seen", key("never seen"), true)).isFalse();

        release(a, "job", granted(a, "job"));
        assertThat(a.forceRelease("job", key("job"), false)).isFalse();
    }

    @Test
    void aDenialTellsWhoHoldsTheLock() {
        granted(a, "job");

        Denial denial = denied(b, "job");

        assertThat(denial.reason()).isEqualTo(DenialReason.HELD);
        assertThat(denial.name()).isEqualTo("job");
        assertThat(denial.holder()).isEqualTo("A");
    }

    @Test
    void findTellsWhoHoldsIt() {
        ClaimAnswer.Granted granted = granted(a, "job");
        LockInfo seen = b.find("job").orElseThrow();
        assertThat(seen.state()).isEqualTo(LockState.HELD);
        assertThat(seen.strategy()).isEqualTo(b.strategy());
        assertThat(seen.holder()).isEqualTo("A");
        LockInfo own = a.find("job").orElseThrow();
        assertThat(own.fence()).isEqualTo(granted.fence());
        assertThat(own.acquiredAt()).isEqualTo(granted.acquiredAt());

        release(a, "job", granted);
        assertThat(b.find("job").stream()).allMatch(free -> free.state() == LockState.FREE && free.holder() == null);
    }

    @Test
    void theSweepLeavesWhatIsInUse() {
        granted(a, "held");
        ClaimAnswer.Granted done = granted(a, new Claim("done", key("done"), LEASE, "1", null));
        a.release(released("done", done, RunOutcome.SUCCEEDED, null, null, "1"));

        a.tidyUp();

        assertThat(a.findAll()).extracting(LockInfo::name).containsExactly("done", "held");
    }

    // ---- in the words of the tests

    protected final long key(String name) {
        return KeyDerivation.SHA256.key(namespace, name);
    }

    protected final Claim claim(String name, Duration lease) {
        return claimIn(namespace, name, lease);
    }

    private Claim claimIn(String itsNamespace, String name, Duration lease) {
        return new Claim(name, KeyDerivation.SHA256.key(itsNamespace, name), lease, null, null);
    }

    private Claim versioned(String version) {
        return new Claim("job", key("job"), LEASE, version, null);
    }

    protected final ClaimAnswer claim(LockStore store, String name) {
        return store.claim(claim(name, LEASE));
    }

    private static ClaimAnswer claim(LockStore store, Claim claim) {
        return store.claim(claim);
    }

    protected final ClaimAnswer.Granted granted(LockStore store, String name) {
        return granted(store, claim(name, LEASE));
    }

    protected static ClaimAnswer.Granted granted(LockStore store, Claim claim) {
        ClaimAnswer answer = store.claim(claim);
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    protected static ClaimAnswer.Granted grantedInTheEnd(LockStore store, Claim claim) {
        AtomicReference<ClaimAnswer> answer = new AtomicReference<>();
        await().pollInterval(Duration.ofMillis(10)).until(() -> {
            answer.set(store.claim(claim));
            return answer.get() instanceof ClaimAnswer.Granted;
        });
        return (ClaimAnswer.Granted) answer.get();
    }

    protected final Denial denied(LockStore store, String name) {
        return denied(store, claim(name, LEASE));
    }

    protected static Denial denied(LockStore store, Claim claim) {
        ClaimAnswer answer = store.claim(claim);
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial();
    }

    protected static Renewal renewal(String name, long fence, Duration lease) {
        return new Renewal(name, fence, lease, null);
    }

    protected static RenewalAnswer renew(LockStore store, String name, ClaimAnswer.Granted granted, Duration lease) {
        List<RenewalAnswer> answers =
                store.renew(List.of(renewal(name, granted.fence(), lease)), BUDGET, Caller.HOLDER);
        assertThat(answers).hasSize(1);
        return answers.get(0);
    }

    protected final boolean release(LockStore store, String name, ClaimAnswer.Granted granted) {
        return store.release(released(name, granted, RunOutcome.SUCCEEDED, null, null, null));
    }

    protected final Release released(
            String name,
            ClaimAnswer.Granted granted,
            RunOutcome outcome,
            @Nullable String error,
            @Nullable Duration minHold,
            @Nullable String completed) {
        return new Release(name, key(name), granted.fence(), outcome, error, minHold, completed, false);
    }

    private static void assertLost(RenewalAnswer answer) {
        assertThat(answer.result()).isIn(Result.LOST, Result.SESSION_ENDED);
    }

    private @Nullable String data(String name) {
        return a.find(name).orElseThrow().data();
    }

    protected final void awaitState(String name, LockState state) {
        await().pollInterval(Duration.ofMillis(10))
                .until(() -> a.find(name).orElseThrow().state() == state);
    }
}
