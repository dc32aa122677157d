package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseStores;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.CapturedLog;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class HousekeepingTests {

    private final Outage outage = new Outage(LockStrategy.LEASE, new Listeners(List.of()), () -> {});

    private Housekeeping of(LockStore store) {
        return new Housekeeping("pglock-test", store, outage);
    }

    private void fail(String state) {
        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> outage.observe(() -> {
                    throw new LockStorageException("failed", new SQLException("as planned", state));
                }));
    }

    @Test
    void onlyAnOutageThatAnyAnswerWouldEndIsAskedAbout() {
        FaultyStore store = new FaultyStore(new LocalStore(StoreIdentity.random("test", "A"), new LocalSpace()));
        Housekeeping housekeeping = of(store);
        assertThat(housekeeping.beat(System.nanoTime())).isNotNull();
        fail("53100");
        assertThat(housekeeping.beat(System.nanoTime())).isNotNull();
        assertThat(store.probes.get()).as("while it works, or fails at some").isZero();
        outage.observe(() -> "it works");

        fail("57P01");
        store.failClaims = true;
        assertThat(housekeeping.beat(System.nanoTime())).isNotNull();
        assertThat(outage.lasting()).isNotNull();
        store.failClaims = false;
        assertThat(housekeeping.beat(System.nanoTime())).isNotNull();

        assertThat(store.probes.get()).isEqualTo(2);
        assertThat(outage.lasting()).isNull();
    }

    /** Names may be computed, and many of them be new each day. */
    @Test
    void aSweepThatFindsMoreThanItMayRemoveGoesOnSoon() throws Exception {
        try (LeaseStores stores = LeaseStores.withTable()) {
            fill(stores, 2_500);
            LeaseStore store = stores.store(StoreIdentity.random(LeaseStores.NAMESPACE, "S"));
            Housekeeping housekeeping = of(store);

            housekeeping.wakeBy(System.nanoTime());

            await().atMost(Duration.ofSeconds(25))
                    .until(() -> stores.database().number("SELECT count(*) FROM pglock_lease") == 0);
            await().untilAsserted(() ->
                    assertThat(store.untilTidyUp()).as("nothing is left to do").isNull());
            housekeeping.stop(5_000);
        }
    }

    @Test
    void aSweepThatTakesTooLongIsToldOnce() throws Exception {
        try (LeaseStores stores = LeaseStores.withTable();
                CapturedLog log = CapturedLog.of(LeaseStore.class)) {
            fill(stores, 1);
            stores.database().execute("""
                    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN OLD; END $$;
                    CREATE TRIGGER slow BEFORE DELETE ON pglock_lease FOR EACH ROW EXECUTE FUNCTION slow()
                    """);
            Housekeeping housekeeping = of(stores.store(StoreIdentity.random(LeaseStores.NAMESPACE, "S")));

            assertThat(housekeeping.beat(System.nanoTime())).isNotNull();
            assertThat(housekeeping.beat(System.nanoTime())).isNotNull();

            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("WARN The table ")
                    .contains("pglock_lease", " could not be swept within 666 ms");
        }
    }

    private static void fill(LeaseStores stores, int rows) {
        stores.database().execute("""
                INSERT INTO pglock_lease (namespace, name, fence, acquired_at, expires_at, released_at)
                SELECT 'test', 'old-' || i, 1, now() - interval '1 y', now() - interval '360 d', now() - interval '360 d'
                FROM generate_series(1, %d) AS i
                """.formatted(rows));
    }
}
