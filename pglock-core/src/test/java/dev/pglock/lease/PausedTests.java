package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.RunOutcome;
import dev.pglock.Tick;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A row that says {@code paused} is closed to everybody, whatever his strategy, with and without a tick. */
class PausedTests {

    private static final Tick TICK = new Tick.Rate("rate", Duration.ofMillis(1));

    private final ReplicaStores stores = ReplicaStores.withTable();

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    @Test
    void nobodyIsGrantedWhatIsPausedUntilItIsNot() {
        LockStore lease = stores.lease(StoreIdentity.random("test", "A"));
        LockStore advisory = stores.store(StoreIdentity.random("test", "B"));
        run(lease);
        stores.database().execute("UPDATE pglock_lease SET paused = 'the migration'");

        for (LockStore store : new LockStore[] {lease, advisory}) {
            assertThat(denied(store, null).reason()).isEqualTo(DenialReason.PAUSED);
            assertThat(denied(store, TICK).reason()).isEqualTo(DenialReason.PAUSED);
        }

        stores.database().execute("UPDATE pglock_lease SET paused = NULL");
        run(lease);
        run(advisory);
    }

    private static void run(LockStore store) {
        ClaimAnswer answer = store.claim(claim(null));
        assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
        long fence = ((ClaimAnswer.Granted) answer).fence();
        assertThat(store.release(new Release("name", key(), fence, RunOutcome.SUCCEEDED, null, null, null, false)))
                .isTrue();
    }

    private static Denial denied(LockStore store, @Nullable Tick tick) {
        ClaimAnswer answer = store.claim(claim(tick));
        assertThat(answer).isInstanceOf(ClaimAnswer.Denied.class);
        return ((ClaimAnswer.Denied) answer).denial();
    }

    private static Claim claim(@Nullable Tick tick) {
        return new Claim("name", key(), ReplicaStores.LEASE, null, null, tick);
    }

    private static long key() {
        return KeyDerivation.SHA256.key("test", "name");
    }
}
