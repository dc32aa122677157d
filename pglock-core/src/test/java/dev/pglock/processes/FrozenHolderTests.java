package dev.pglock.processes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;

/** A process that is stopped and goes on, as a machine that is suspended does. */
class FrozenHolderTests {

    @Test
    void aHolderThatWasFrozenCommitsNothingAndReleasesNothing() throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            database.execute("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0);"
                    + " CREATE TABLE said (what text); CREATE TABLE trusted (until timestamptz)");
            ChildJvm frozen = Jvm.start(FrozenHolder.class, database, "A");
            Jvm other = new Jvm(database.url(), database.username(), database.password(), "B");
            try (LockEngine engine = other.engine()) {
                await().atMost(Duration.ofSeconds(30))
                        .until(() -> said(database).equals("WORKS"));
                frozen.freeze();
                try (LockHandle next = engine.acquire(LockRequest.of(FrozenHolder.NAME))) {
                    frozen.thaw();
                    assertThat(frozen.awaitEnd(Duration.ofSeconds(30))).isTrue();

                    assertThat(said(database)).isEqualTo("WORKS, LOST, REFUSED, RELEASED NOTHING");
                    assertThat(database.number("SELECT value FROM counter")).isZero();
                    assertThat(database.isTrue(
                                    "SELECT until <= ? FROM trusted",
                                    next.acquiredAt().atOffset(ZoneOffset.UTC)))
                            .as("nobody was granted the lock before the trust of the frozen one had ended")
                            .isTrue();
                    next.extend(Jvm.LEASE);
                    assertThat(database.number(
                                    "SELECT fence FROM pglock_lease WHERE holder IS NOT NULL AND holder_label = 'B'"))
                            .isEqualTo(next.fence());
                }
            } finally {
                frozen.close();
            }
        }
    }

    private static String said(TestDatabase database) {
        return String.valueOf(database.text("SELECT string_agg(what, ', ' ORDER BY ctid) FROM said"));
    }
}
