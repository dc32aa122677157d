package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.StoreIdentity;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ReleaseInTheQueueTests {

    /** Longer than a piece of work may take: what was done must be remembered all the same. */
    @Test
    void aReleaseThatFoundAllConnectionsInUseIsTriedOnceMore() throws Exception {
        Duration lease = Duration.ofSeconds(30);
        JdbcTimeouts timeouts = JdbcTimeouts.of(LeaseStores.LEASE);
        try (LeaseStores stores = LeaseStores.withTable();
                OwnConnections own =
                        stores.connections("A", stores.spec(stores.database().url()), 2)) {
            LeaseStore store = new LeaseStore(
                    own,
                    StoreIdentity.random(LeaseStores.NAMESPACE, "A"),
                    LeaseStores.TABLE,
                    timeouts,
                    Duration.ofDays(7));
            ClaimAnswer.Granted lock = granted(store.claim(LeaseStores.claim("name", lease)));
            CountDownLatch taken = new CountDownLatch(1);
            Thread first = new Thread(
                    () -> occupy(own, taken, timeouts.work().multipliedBy(13).dividedBy(10)));
            first.start();
            assertThat(taken.await(10, TimeUnit.SECONDS)).isTrue();

            assertThat(store.release(LeaseStores.release("name", lock))).isTrue();

            first.join();
        }
    }

    private static void occupy(OwnConnections own, CountDownLatch taken, Duration time) {
        try {
            boolean ignored = own.run(Lane.WORK, Duration.ofSeconds(10), (connection, unanswered) -> {
                taken.countDown();
                try {
                    Thread.sleep(time.toMillis());
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                return true;
            });
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }
}
