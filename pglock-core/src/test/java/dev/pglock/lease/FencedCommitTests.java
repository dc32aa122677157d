package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.DenialReason;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Tenancy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the check before a commit does to the transaction it is made in. */
class FencedCommitTests {

    private static final String TIMEOUT = "SELECT current_setting('idle_in_transaction_session_timeout')";
    private static final String LOCK_TIMEOUT = "SELECT current_setting('lock_timeout')";

    private final LeaseStores stores = LeaseStores.withTable();
    private final LeaseStore a = stores.store("A");
    private final LeaseStore b = stores.store("B");

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private Tenancy checked(Connection business, ClaimAnswer.Granted lock) throws SQLException {
        Tenancy held = new Tenancy("name", LeaseStores.key("name"), lock.fence());
        a.checkCommit(business, held);
        return held;
    }

    @Test
    void whoVanishesBetweenTheCheckAndTheCommitKeepsTheNameForABoundedTimeAndCommitsNothing() throws Exception {
        stores.database().execute("CREATE TABLE written (value int)");
        ClaimAnswer.Granted lock = LeaseStores.granted(a, "name");
        try (Connection business = stores.database().direct();
                Statement work = business.createStatement()) {
            business.setAutoCommit(false);
            work.execute("INSERT INTO written VALUES (1)");
            checked(business, lock);
            assertThat(a.release(LeaseStores.release("name", lock))).isTrue();

            assertThat(LeaseStores.denied(b, "name").reason()).isEqualTo(DenialReason.KEY_BUSY);
            Duration bound = JdbcTimeouts.of(LeaseStores.LEASE).work().multipliedBy(2);
            await().atMost(bound.plusSeconds(1))
                    .until(() -> b.claim(LeaseStores.claim("name")) instanceof ClaimAnswer.Granted);
            assertThatExceptionOfType(SQLException.class).isThrownBy(business::commit);
        }
        assertThat(stores.database().number("SELECT count(*) FROM written")).isZero();
    }

    @Test
    void aTransactionThatIsEndedSoonerAnywayIsLeftAloneAndNothingOutlastsIt() throws Exception {
        ClaimAnswer.Granted lock = LeaseStores.granted(a, "name");
        try (Connection business = stores.database().direct();
                Statement settings = business.createStatement()) {
            business.setAutoCommit(false);
            checked(business, lock);
            assertThat(TestDatabase.text(business, TIMEOUT)).isNotEqualTo("0");
            business.commit();
            assertThat(TestDatabase.text(business, TIMEOUT)).isEqualTo("0");

            settings.execute("SET idle_in_transaction_session_timeout = '900ms'");
            checked(business, lock);
            assertThat(TestDatabase.text(business, TIMEOUT)).isEqualTo("900ms");

            settings.execute("SET idle_in_transaction_session_timeout = '1d'");
            checked(business, lock);
            assertThat(TestDatabase.text(business, TIMEOUT)).isNotEqualTo("1d");
        }
    }

    /** Whoever has the whole table locked, for a migration say. */
    @Test
    void aCommitWaitsForTheTableNoLongerThanItsAnswerIsOfUse() throws Exception {
        Duration bound = JdbcTimeouts.of(LeaseStores.LEASE).work();
        ClaimAnswer.Granted lock = LeaseStores.granted(a, "name");
        try (Connection business = stores.database().direct();
                Connection migration = stores.database().direct();
                Statement work = business.createStatement();
                Statement locks = migration.createStatement()) {
            business.setAutoCommit(false);
            migration.setAutoCommit(false);
            for (String theirs : new String[] {"0", "1h", "100ms"}) {
                work.execute("SET lock_timeout = '" + theirs + "'");
                business.commit();
                locks.execute("LOCK TABLE pglock_lease IN ACCESS EXCLUSIVE MODE");

                long asked = System.nanoTime();
                assertThatExceptionOfType(SQLException.class)
                        .isThrownBy(() -> checked(business, lock))
                        .satisfies(e -> assertThat(e.getSQLState()).isEqualTo("55P03"));
                Duration waited = Duration.ofNanos(System.nanoTime() - asked);
                if (theirs.equals("100ms")) {
                    assertThat(waited).as("theirs is shorter").isLessThan(bound);
                } else {
                    assertThat(waited).isBetween(bound.minusMillis(50), bound.plusSeconds(2));
                }
                business.rollback();
                migration.rollback();
                assertThat(TestDatabase.text(business, LOCK_TIMEOUT)).isEqualTo(theirs);
            }
        }
    }

    /** What is deferred until the commit waits for locks as its transaction wants it to. */
    @Test
    void afterTheCheckTheTransactionWaitsForLocksAsBefore() throws Exception {
        ClaimAnswer.Granted lock = LeaseStores.granted(a, "name");
        try (Connection business = stores.database().direct();
                Statement settings = business.createStatement()) {
            business.setAutoCommit(false);
            for (int isolation :
                    new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ}) {
                business.setTransactionIsolation(isolation);
                for (String theirs : new String[] {"0", "1h", "100ms", "90min"}) {
                    settings.execute("SET LOCAL lock_timeout = '" + theirs + "'");
                    Tenancy held = checked(business, lock);
                    assertThat(TestDatabase.text(business, LOCK_TIMEOUT)).isEqualTo(theirs);
                    a.checkCommit(business, held);
                    assertThat(TestDatabase.text(business, LOCK_TIMEOUT)).isEqualTo(theirs);
                    business.commit();
                    assertThat(TestDatabase.text(business, LOCK_TIMEOUT)).isEqualTo("0");
                    business.rollback();
                }
            }
        }
    }
}
