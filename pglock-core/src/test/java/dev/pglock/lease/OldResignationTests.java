package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.RenewalAnswer;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class OldResignationTests {

    /** The server's clock has been set back, as after a failover, or by whoever corrects it. */
    @Test
    void whoIsGrantedALockIsNotAskedForItBecauseHisPredecessorWasInTheFuture() throws Exception {
        try (LeaseStores stores = LeaseStores.withTable()) {
            LeaseStore store = stores.store("A");
            ClaimAnswer.Granted before = granted(store, "name");
            assertThat(store.release(LeaseStores.release("name", before))).isTrue();
            stores.database()
                    .execute(
                            "UPDATE pglock_lease SET resign_at = clock_timestamp() + interval '1 h', resign_reason = 'x'");

            ClaimAnswer.Granted lock = granted(store, "name");

            assertThat(renewed(store, lock).resign()).isNull();
            assertThat(store.resign("name", LeaseStores.key("name"), "now indeed"))
                    .isTrue();
            assertThat(renewed(store, lock).resign()).isEqualTo("now indeed");
        }
    }

    private static RenewalAnswer renewed(LeaseStore store, ClaimAnswer.Granted lock) {
        return store.renew(List.of(LeaseStores.renewal("name", lock)), Duration.ofSeconds(5), Caller.HEARTBEAT)
                .get(0);
    }
}
