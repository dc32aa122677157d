package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockState;
import dev.pglock.RunOutcome;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.ReplicaStores;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Both strategies over connections with whatever a URL can ask of the driver, and as roles with whatever settings. */
@Tag("thorough")
class HostileConnectionsTests {

    private static final String NAMESPACE = "test";
    private static final Duration LEASE = Duration.ofSeconds(30);

    private final String role = PostgresServer.shared().newRole();
    private final ReplicaStores stores = ReplicaStores.withTable().as(role);

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private static Claim claim(String version) {
        return new Claim("name", KeyDerivation.SHA256.key(NAMESPACE, "name"), LEASE, version, "x\\'\"{}é");
    }

    private void assertLocksWork(String url) {
        stores.database().execute("GRANT SELECT, INSERT, UPDATE, DELETE ON pglock_lease TO " + role);
        List<LockStore> all = List.of(
                stores.lease(StoreIdentity.random(NAMESPACE, "A"), url, LEASE, 2),
                stores.store(StoreIdentity.random(NAMESPACE, "B"), url, LEASE, 10));
        int version = 0;
        for (int round = 0; round < 8; round++) {
            for (LockStore store : all) {
                LockStore other = all.get(store == all.get(0) ? 1 : 0);
                String itsVersion = String.valueOf(version++);
                ClaimAnswer answer = store.claim(claim(itsVersion));
                assertThat(answer).isInstanceOf(ClaimAnswer.Granted.class);
                long fence = ((ClaimAnswer.Granted) answer).fence();
                assertThat(other.claim(claim(null)))
                        .isInstanceOfSatisfying(
                                ClaimAnswer.Denied.class,
                                denied -> assertThat(denied.denial().reason())
                                        .isIn(DenialReason.HELD, DenialReason.KEY_BUSY));
                assertThat(store.find("name").orElseThrow().state()).isEqualTo(LockState.HELD);
                assertThat(store.renew(
                                List.of(new Renewal("name", fence, LEASE, new Renewal.Payload(null))),
                                Duration.ofSeconds(5),
                                LockStore.Caller.HEARTBEAT))
                        .extracting(RenewalAnswer::result)
                        .containsExactly(RenewalAnswer.Result.RENEWED);
                assertThat(store.release(new Release(
                                "name", claim(null).key(), fence, RunOutcome.SUCCEEDED, null, null, itsVersion, false)))
                        .isTrue();
                assertThat(other.claim(claim(itsVersion)))
                        .isInstanceOfSatisfying(
                                ClaimAnswer.Denied.class,
                                denied -> assertThat(denied.denial())
                                        .extracting(Denial::reason)
                                        .isEqualTo(DenialReason.DONE));
            }
        }
        assertThat(stores.database().isTrue("SELECT data IS NULL FROM pglock_lease"))
                .isTrue();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "preferQueryMode=simple",
                "preferQueryMode=extendedForPrepared",
                "preferQueryMode=extendedCacheEverything",
                "prepareThreshold=0",
                "prepareThreshold=1",
                "binaryTransfer=false",
                "stringtype=unspecified",
                "defaultRowFetchSize=1&adaptiveFetch=true",
                "reWriteBatchedInserts=true",
                "autosave=always&cleanupSavepoints=true",
                "readOnly=true&readOnlyMode=always",
                "socketTimeout=1&connectTimeout=1&loginTimeout=1",
                "options=-c%20statement_timeout=5%20-c%20lock_timeout=1",
                "options=-c%20search_path=pg_catalog",
                "currentSchema=nowhere",
                "sslmode=disable&gssEncMode=disable",
                "sslmode=prefer",
                "preparedStatementCacheQueries=0",
                "disableColumnSanitiser=true&assumeMinServerVersion=14",
                "targetServerType=primary",
                "ApplicationName=theirs"
            })
    void whateverTheUrlAsksFor(String parameters) {
        assertLocksWork(stores.database().url() + "?" + parameters);
    }

    /** Timeouts are as short as leaves a session the time to be set up, on a machine that has more to do. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "statement_timeout = '5ms'",
                "lock_timeout = '1ms'",
                "idle_session_timeout = '100ms'",
                "idle_in_transaction_session_timeout = '1ms'",
                "search_path = ''",
                "DateStyle = 'German, DMY'",
                "IntervalStyle = 'sql_standard'",
                "TimeZone = 'Pacific/Kiritimati'",
                "extra_float_digits = -15",
                "standard_conforming_strings = off",
                "transform_null_equals = on",
                "array_nulls = off",
                "row_security = off",
                "plan_cache_mode = force_generic_plan",
                "plan_cache_mode = force_custom_plan",
                "enable_indexscan = off",
                "jit_above_cost = 0",
                "lc_messages = 'C'",
                "default_transaction_isolation = 'serializable'",
                "default_transaction_read_only = on"
            })
    void whateverTheRoleHasSet(String setting) {
        stores.database().server().execute("ALTER ROLE " + role + " SET " + setting);
        assertLocksWork(stores.database().url());
    }
}
