package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.RunOutcome;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.Release;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Which commits wait for the disk: all but the release that has nothing to remember. */
class ForgettableReleaseTests {

    /** At the commit, when nothing of the statement can change it any more. */
    private static final String WITNESS = """
            CREATE TABLE committed (number serial, synchronously text);
            CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
              INSERT INTO committed (synchronously) VALUES (current_setting('synchronous_commit'));
              RETURN NULL;
            END $$;
            CREATE CONSTRAINT TRIGGER witness AFTER INSERT OR UPDATE ON pglock_lease DEFERRABLE INITIALLY DEFERRED
              FOR EACH ROW EXECUTE FUNCTION witness()
            """;

    private final LeaseStores stores = LeaseStores.withTable();
    private final LeaseStore store = stores.store("A");

    @BeforeEach
    void watch() {
        stores.database().execute(WITNESS);
    }

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private @Nullable String lastCommit() {
        return stores.database().text("SELECT synchronously FROM committed ORDER BY number DESC LIMIT 1");
    }

    private void release(
            @Nullable Duration minHold, @Nullable String version, boolean endCounts, String synchronously) {
        String name = "name " + synchronously + minHold + version + endCounts;
        ClaimAnswer.Granted lock = LeaseStores.granted(store, name);
        assertThat(lastCommit()).as("a grant").isEqualTo("on");
        assertThat(store.release(new Release(
                        name,
                        LeaseStores.key(name),
                        lock.fence(),
                        RunOutcome.SUCCEEDED,
                        null,
                        minHold,
                        version,
                        endCounts)))
                .isTrue();
        assertThat(lastCommit()).as(name).isEqualTo(synchronously);
    }

    @Test
    void aReleaseWaitsForTheDiskIfAndOnlyIfSomebodyWouldRunTooEarlyWereItForgotten() {
        release(null, null, false, "off");
        release(Duration.ofSeconds(1), null, false, "on");
        release(null, "1", false, "on");
        release(null, null, true, "on");
        // What one release was allowed, the next is not.
        release(null, null, false, "off");
        release(null, "2", false, "on");
    }
}
