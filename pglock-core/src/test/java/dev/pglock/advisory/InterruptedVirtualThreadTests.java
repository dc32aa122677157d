package dev.pglock.advisory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRefusedException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import dev.pglock.testing.VirtualThreads;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A socket is closed when a virtual thread is interrupted while it reads from it. */
@EnabledForJreRange(min = JRE.JAVA_21, disabledReason = "has no virtual threads")
class InterruptedVirtualThreadTests {

    private static final String NAMESPACE = "virtual";
    private static final String SESSION = "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory'"
            + " AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

    private final ReplicaStores stores = ReplicaStores.withTable();
    private final TestDatabase database = stores.database();
    private final TcpProxy wire = TcpProxy.to(database.server());
    private final List<LockEngine> engines = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        wire.resume();
        engines.forEach(LockEngine::close);
        stores.close();
        wire.close();
    }

    private LockEngine engine(LockStrategy strategy) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, "A");
        LockStore store = strategy == LockStrategy.LEASE
                ? stores.lease(identity, database.url(wire), ReplicaStores.LEASE, 2)
                : stores.store(identity, database.url(wire), ReplicaStores.LEASE, 3);
        LockEngine engine = LockEngine.builder(
                        EngineSettings.defaults(NAMESPACE, "A", strategy).withLease(ReplicaStores.LEASE, null))
                .store(store)
                .build();
        engines.add(engine);
        return engine;
    }

    private static void insert(Connection connection) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute("INSERT INTO business VALUES (1)");
        }
    }

    private static LockHandle taken(LockEngine engine, String name) {
        return engine.tryAcquire(LockRequest.of(name)).orElseThrow();
    }

    @Test
    void anInterruptInAStatementOnTheLockSessionEndsNoLock() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY);
        LockHandle other = taken(a, "other");
        long pid = database.number(SESSION);
        wire.delay(Duration.ofMillis(100));

        long before = wire.statements();
        VirtualThreads.Running<Optional<LockHandle>> claim =
                VirtualThreads.start(() -> a.tryAcquire(LockRequest.of("name")));
        await().pollInterval(Duration.ofMillis(5)).until(() -> wire.statements() > before);
        claim.interrupt();
        LockHandle lock = claim.result().orElseThrow();
        assertThat(claim.endedInterrupted()).isTrue();

        VirtualThreads.Running<Boolean> release = VirtualThreads.start(lock::release);
        release.interruptUntilItEnds(20);
        assertThat(release.result()).isTrue();
        assertThat(release.endedInterrupted()).isTrue();

        wire.resume();
        other.extend(ReplicaStores.LEASE);
        assertThat(other.isHeld()).isTrue();
        assertThat(database.number(SESSION)).isEqualTo(pid);
        assertThat(other.release()).isTrue();
    }

    @Test
    void anInterruptWhileTheLockSessionIsOpenedStopsNoClaim() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY);
        wire.delay(Duration.ofMillis(10));

        VirtualThreads.Running<LockHandle> claim = VirtualThreads.start(() -> taken(a, "name"));
        claim.interruptUntilItEnds(5);

        assertThat(claim.result().isHeld()).isTrue();
        assertThat(claim.endedInterrupted()).isTrue();
        wire.resume();
        assertThat(claim.result().release()).isTrue();
    }

    /** The work's own statements are its own business; what is done for it before and after them is not. */
    @ParameterizedTest
    @EnumSource(names = {"LEASE", "ADVISORY"})
    void anInterruptAtTheEndOfWorkIsInTheWayOfNeitherItsCommitNorItsRelease(LockStrategy strategy) throws Exception {
        database.execute("CREATE TABLE business (id int)");
        LockEngine a = engine(strategy);

        VirtualThreads.Running<String> work =
                VirtualThreads.start(() -> a.onConnection(LockRequest.of("name").version("1"), connection -> {
                    insert(connection);
                    Thread.currentThread().interrupt();
                    return "done";
                }));

        assertThat(work.result()).isEqualTo("done");
        assertThat(work.endedInterrupted()).isTrue();
        assertThat(database.number("SELECT count(*) FROM business")).isEqualTo(1);
        assertThat(database.text("SELECT completed FROM pglock_lease")).isEqualTo("{1}");
        await().until(() -> stores.keysHeld() == 0);
    }

    @Test
    void aRefusalSaysWhoHasAsked() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY);
        List.of("1", "2", "3").forEach(name -> taken(a, name));

        VirtualThreads.Running<Boolean> asked = VirtualThreads.start(() -> {
            assertThatExceptionOfType(LockRefusedException.class)
                    .isThrownBy(() -> taken(a, "4"))
                    .satisfies(refusal -> assertThat(refusal.getStackTrace())
                            .anyMatch(frame ->
                                    frame.getClassName().equals(getClass().getName())));
            return true;
        });

        assertThat(asked.result()).isTrue();
    }

    @Test
    void noThreadIsLeftWhenNobodyAsksAnyMore() throws Exception {
        LockEngine a = engine(LockStrategy.ADVISORY);
        assertThat(VirtualThreads.start(() -> taken(a, "name")).result().release())
                .isTrue();
        await().until(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().equals("pglock-session")));
    }
}
