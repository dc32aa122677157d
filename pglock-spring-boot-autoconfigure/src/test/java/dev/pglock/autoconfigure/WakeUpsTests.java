package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Who waits for a lock of another replica, and what it costs. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class WakeUpsTests extends TwoReplicas {

    private static final Duration TOLD = Duration.ofMillis(500);
    private static final Duration POLLED = Duration.ofMillis(2500);

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    private LockRegistry replica(String label, String... properties) {
        return start(label, Application.class, properties).getBean(LockRegistry.class);
    }

    private Future<Long> grantedAt(LockRegistry registry, LockRequest request) {
        return threads.submit(() -> {
            try (LockHandle lock = registry.acquire(request)) {
                return System.nanoTime();
            }
        });
    }

    private long announced() {
        return database.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
                + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    }

    /** The session that announces is the one that listens. */
    private long listening() {
        return database.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                + " AND application_name LIKE 'pglock:orders:%' AND query LIKE '%lock_shared(1885826155%'");
    }

    private long connections(String label) {
        return database.number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ?",
                "pglock:orders:" + label);
    }

    @ParameterizedTest
    @EnumSource(
            value = LockStrategy.class,
            names = {"LEASE", "ADVISORY"})
    void aReleaseWakesWhoeverWaitsOnAnotherReplica(LockStrategy strategy) throws Exception {
        LockRequest request = LockRequest.of("n").strategy(strategy);
        LockHandle lock = replica("a").tryAcquire(request).orElseThrow();
        Future<Long> waiter = grantedAt(replica("b"), request);
        await().atMost(Duration.ofSeconds(10)).until(() -> announced() == 1);
        assertThat(listening()).isOne();
        // One that asks, one that listens, and for some seconds one from the start-up
        assertThat(connections("b")).isBetween(2L, 3L);

        long released = System.nanoTime();
        lock.close();

        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(TOLD);
        await().atMost(Duration.ofSeconds(10)).until(() -> announced() == 0 && listening() == 0);
    }

    @Test
    void withoutWakeUpsNobodyListens() throws Exception {
        assertPolls(replica("a"), replica("b", "pglock.wake-ups=false"));
    }

    @Test
    void overBorrowedConnectionsNobodyListensWhichIsSaid(CapturedOutput output) throws Exception {
        assertPolls(replica("a"), replica("b", "pglock.datasource.shared=true"));

        assertThat(output).containsOnlyOnce("A release wakes nobody on another replica");
    }

    private void assertPolls(LockRegistry a, LockRegistry b) throws Exception {
        LockRequest request = LockRequest.of("n");
        LockHandle lock = a.tryAcquire(request).orElseThrow();
        Future<Long> waiter = grantedAt(b, request);
        for (int i = 0; i < 10; i++) {
            TimeUnit.MILLISECONDS.sleep(50);
            assertThat(announced()).isZero();
        }
        long released = System.nanoTime();
        lock.close();
        assertThat(Duration.ofNanos(waiter.get(10, TimeUnit.SECONDS) - released))
                .isLessThan(POLLED);
    }
}
