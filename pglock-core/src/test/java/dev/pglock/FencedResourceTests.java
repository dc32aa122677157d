package dev.pglock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A resource in a database that knows nothing of the locks, here kept in memory. */
class FencedResourceTests {

    private final TestDatabase database = PostgresServer.shared().newDatabase();
    private final LockEngine registry = LockEngine.builder(EngineSettings.defaults("test", "a", LockStrategy.LOCAL))
            .store(new LocalStore(StoreIdentity.random("test", "a"), new LocalSpace()))
            .build();
    private final FencedResource resource = new FencedResource("ledger");

    @BeforeEach
    void prepare() throws IOException {
        try (InputStream in = FencedResource.class.getResourceAsStream("fenced_resource.sql")) {
            String ddl = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            database.execute(ddl);
            database.execute(ddl);
        }
        database.execute("CREATE TABLE ledger (fence bigint)");
    }

    @AfterEach
    void close() {
        registry.close();
        database.close();
    }

    private LockHandle take() {
        return registry.tryAcquire(LockRequest.of("n")).orElseThrow();
    }

    private void write(Connection connection, LockHandle lock) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            resource.admit(connection, lock);
            statement.execute("INSERT INTO ledger VALUES (" + lock.fence() + ")");
            connection.commit();
        }
    }

    private void write(LockHandle lock) throws SQLException {
        try (Connection connection = database.direct()) {
            write(connection, lock);
        }
    }

    private long written() {
        return database.number("SELECT count(*) FROM ledger");
    }

    @Test
    void aTenureWritesAsOftenAsItLikesUntilALaterOneHasWritten() throws SQLException {
        try (LockHandle first = take()) {
            write(first);
            write(first);
        }
        try (LockHandle second = take()) {
            // What a later holder has seen, told by a holder who has not heard of him
            database.execute("UPDATE pglock_fenced_resource SET fence = " + (second.fence() + 1));
            assertThatExceptionOfType(LockLostException.class)
                    .isThrownBy(() -> write(second))
                    .withMessageContaining("'ledger'")
                    .withMessageContaining("with fence " + (second.fence() + 1));
        }
        try (LockHandle third = take()) {
            write(third);
            assertThat(database.number("SELECT fence FROM pglock_fenced_resource WHERE resource = 'ledger'"))
                    .isEqualTo(third.fence());
        }
        assertThat(written()).isEqualTo(3);
    }

    @Test
    void whoHasLostHisLockIsNotEvenAsked() throws SQLException {
        LockHandle lock = take();
        lock.release();
        assertThatExceptionOfType(LockLostException.class).isThrownBy(() -> write(lock));
        assertThat(written()).isZero();
    }

    @Test
    void whatIsRolledBackHasNotBeenSeen() throws SQLException {
        try (Connection connection = database.direct();
                LockHandle lock = take()) {
            connection.setAutoCommit(false);
            resource.admit(connection, lock);
            connection.rollback();
        }
        assertThat(database.number("SELECT count(*) FROM pglock_fenced_resource"))
                .isZero();
    }

    @Test
    void inAutocommitModeItIsRefused() throws SQLException {
        try (Connection connection = database.direct();
                LockHandle lock = take()) {
            assertThatIllegalStateException().isThrownBy(() -> resource.admit(connection, lock));
        }
    }

    /** Of all that were ever granted the lock, at the same time: what is committed is in the order of the fences. */
    @Test
    void whateverMeetsWhateverTheOrderOfCommitsIsThatOfTheFences() throws Exception {
        List<LockEngine> registries = new ArrayList<>();
        List<LockHandle> locks = new ArrayList<>();
        database.execute("ALTER TABLE ledger ADD n serial");
        for (int i = 0; i < 8; i++) {
            // Each has its own memory, and a greater fence than the one before.
            LocalSpace space = new LocalSpace();
            LockEngine engine = LockEngine.builder(EngineSettings.defaults("test", "r" + i, LockStrategy.LOCAL))
                    .store(new LocalStore(StoreIdentity.random("test", "r" + i), space))
                    .build();
            registries.add(engine);
            LockHandle lock = engine.tryAcquire(LockRequest.of("n")).orElseThrow();
            for (int grants = 0; grants < i; grants++) {
                lock.release();
                lock = engine.tryAcquire(LockRequest.of("n")).orElseThrow();
            }
            locks.add(lock);
        }
        assertThat(locks.stream().map(LockHandle::fence)).doesNotHaveDuplicates();
        List<Integer> refused = Concurrently.run(8, i -> () -> {
            int refusals = 0;
            for (int n = 0; n < 50; n++) {
                try {
                    write(locks.get(i));
                } catch (LockLostException e) {
                    refusals++;
                }
            }
            return refusals;
        });
        registries.forEach(LockEngine::close);
        assertThat(refused.stream().mapToInt(Integer::intValue).sum()).isEqualTo(400 - written());
        // The last n is drawn under the row's lock, so it is the order of the commits.
        assertThat(database.number(
                        "SELECT count(*) FROM (SELECT fence < lag(fence) OVER (ORDER BY n) AS back FROM ledger)"
                                + " AS t WHERE back"))
                .isZero();
    }
}
