package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockRefusedException;
import dev.pglock.LockRequest;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.RunOutcome;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer.Result;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Nothing but PostgreSQL: no table, no right to make one. */
class AdvisoryWithoutTableTests {

    private static final String NAMESPACE = "bare";
    private static final Duration LEASE = ReplicaStores.LEASE.multipliedBy(3);

    private final ReplicaStores stores = ReplicaStores.withoutTable();
    private final AdvisoryStore a = store("A");
    private final AdvisoryStore b = store("B");

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    /** No heartbeats here: nobody must be silent for longer than that, on a busy machine, while a session is opened. */
    private AdvisoryStore store(String label) {
        return stores.store(
                StoreIdentity.random(NAMESPACE, label), stores.database().url(), LEASE, 2_000);
    }

    private static Claim claim(String name, @Nullable String version, @Nullable String data) {
        return new Claim(name, KeyDerivation.SHA256.key(NAMESPACE, name), ReplicaStores.LEASE, version, data);
    }

    private static ClaimAnswer.Granted granted(AdvisoryStore store, String name) {
        ClaimAnswer answer = store.claim(claim(name, null, null));
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        return (ClaimAnswer.Granted) answer;
    }

    private static Denial denied(AdvisoryStore store, String name) {
        ClaimAnswer answer = store.claim(claim(name, null, null));
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial();
    }

    private static boolean release(
            AdvisoryStore store, String name, ClaimAnswer.Granted lock, @Nullable Duration minHold) {
        return store.release(new Release(
                name,
                KeyDerivation.SHA256.key(NAMESPACE, name),
                lock.fence(),
                RunOutcome.SUCCEEDED,
                null,
                minHold,
                null,
                false));
    }

    @Test
    void locksExcludeAndFencesIncrease() {
        long last = 0;
        for (int i = 0; i < 20; i++) {
            AdvisoryStore holder = i % 2 == 0 ? a : b;
            ClaimAnswer.Granted lock = granted(holder, "name");
            assertThat(lock.fence()).isGreaterThan(last);
            last = lock.fence();
            Denial denial = denied(i % 2 == 0 ? b : a, "name");
            assertThat(denial.reason()).isEqualTo(DenialReason.HELD);
            assertThat(denial.holder()).isEqualTo(i % 2 == 0 ? "A" : "B");
            assertThat(holder.find("name").orElseThrow().fence()).isEqualTo(lock.fence());
            assertThat(holder.findAll()).hasSize(1);
            assertThat(release(holder, "name", lock, null)).isTrue();
        }
        assertThat(a.find("name")).isEmpty();
    }

    @Test
    void whatOnlyARowCanRememberIsRefused() {
        assertThatExceptionOfType(LockRefusedException.class)
                .isThrownBy(() -> a.claim(claim("name", "1", null)))
                .withMessageContaining("version")
                .withMessageContaining("pglock_lease");
        assertThatExceptionOfType(LockRefusedException.class)
                .isThrownBy(() -> a.claim(claim("name", null, "payload")))
                .withMessageContaining("payload");
        ClaimAnswer.Granted lock = granted(a, "name");
        assertThatExceptionOfType(LockRefusedException.class)
                .isThrownBy(() -> a.renew(
                        List.of(new Renewal("name", lock.fence(), ReplicaStores.LEASE, new Renewal.Payload("x"))),
                        Duration.ofSeconds(1),
                        Caller.HOLDER));
        assertThat(a.find("name").orElseThrow().state()).isEqualTo(LockState.HELD);
        assertThat(release(a, "name", lock, null)).isTrue();
    }

    @Test
    void aMinimumHoldIsKeptByTheKeyForLongerThanTheLease() {
        ClaimAnswer.Granted lock = granted(a, "name");
        Duration minHold = ReplicaStores.LEASE.plusSeconds(1);
        long begun = System.nanoTime();

        assertThat(release(a, "name", lock, minHold)).isTrue();

        assertThat(denied(a, "name").reason()).isEqualTo(DenialReason.HOLD);
        assertThat(denied(a, "name").expiresIn()).isPositive().isLessThanOrEqualTo(minHold);
        assertThat(a.untilTidyUp()).isPositive().isLessThanOrEqualTo(minHold);
        assertThat(a.find("name").orElseThrow().state()).isEqualTo(LockState.HOLD);
        // Nobody speaks on the session meanwhile.
        await().pollInterval(Duration.ofMillis(100))
                .atMost(Duration.ofSeconds(8))
                .until(() -> {
                    Duration until = a.untilTidyUp();
                    if (until != null && until.isZero()) {
                        a.tidyUp();
                    }
                    return b.claim(claim("name", null, null)) instanceof ClaimAnswer.Granted;
                });
        assertThat(Duration.ofNanos(System.nanoTime() - begun))
                .isBetween(minHold.minusMillis(100), minHold.plusSeconds(1));
    }

    @Test
    void aTableThatComesLaterIsObeyedAndOneThatGoesIsMissedByNobody() {
        ClaimAnswer.Granted before = granted(a, "held");
        granted(a, "other");
        stores.createTable();
        stores.database().execute("""
                INSERT INTO pglock_lease (namespace, name, fence, acquired_at, expires_at, paused)
                VALUES ('bare', 'paused', 1, now(), now() + interval '1 s', 'for the test')
                """);

        assertThat(denied(a, "paused").reason()).isEqualTo(DenialReason.UNKNOWN);
        assertThat(denied(a, "paused").reason()).isEqualTo(DenialReason.PAUSED);
        stores.database().execute("DROP TABLE pglock_lease");
        granted(a, "paused");
        assertThat(release(a, "held", before, null)).isTrue();
        assertThat(stores.keysHeld()).isEqualTo(2);
    }

    @Test
    void theMostLocksOfAReplicaAreRefusedBeyondThatAndNothingIsAnOutage() {
        AdvisoryStore few = stores.store(
                StoreIdentity.random(NAMESPACE, "few"), stores.database().url(), ReplicaStores.LEASE, 2);
        AtomicInteger outages = new AtomicInteger();
        try (LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, "few", LockStrategy.ADVISORY)
                        .withLease(ReplicaStores.LEASE, null))
                .store(few)
                .listener(new LockListener() {
                    @Override
                    public void outageBegan(LockStrategy strategy, LockStorageException cause) {
                        outages.incrementAndGet();
                    }
                })
                .build()) {
            LockHandle one = engine.tryAcquire(LockRequest.of("1")).orElseThrow();
            engine.tryAcquire(LockRequest.of("2")).orElseThrow();

            assertThatExceptionOfType(LockRefusedException.class)
                    .isThrownBy(() -> engine.tryAcquire(LockRequest.of("3")))
                    .withMessageContaining("pglock.advisory.max-locks");

            assertThat(outages).hasValue(0);
            one.close();
            engine.tryAcquire(LockRequest.of("3")).orElseThrow();
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(() -> engine.tryAcquire(LockRequest.of("4").leaseDuration(Duration.ofMinutes(1))))
                    .withMessageContaining("pglock.lease-duration");
        }
    }

    @Test
    void aSessionThatHoldsNothingForLongIsClosed() {
        release(a, "name", granted(a, "name"), null);
        long fence = granted(b, "name").fence();

        await().atMost(Duration.ofSeconds(20))
                .pollInterval(Duration.ofMillis(200))
                .until(() -> {
                    assertThat(b.renew(
                                    List.of(new Renewal("name", fence, LEASE, null)),
                                    Duration.ofSeconds(1),
                                    Caller.HEARTBEAT))
                            .allMatch(answer -> answer.result() == Result.RENEWED);
                    b.tidyUp();
                    a.tidyUp();
                    return stores.database()
                                    .number(
                                            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pglock:bare:A'")
                            == 0;
                });
        assertThat(a.untilTidyUp()).isNull();
        granted(a, "another");
    }
}
