package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;

/** Advisory locks live on a session of their own: whatever goes on in the application's pool is nothing to them. */
class AdvisoryBesideThePoolTests extends TwoReplicas {

    private static final String ADVISORY = "pglock.strategy=advisory";
    private static final String KEYS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    @Test
    void twoHundredCyclesBesideABusyPoolLeaveNoKeyOnAnySession() throws Exception {
        ConfigurableApplicationContext a =
                start("a", Application.class, ADVISORY, "spring.datasource.hikari.maximum-pool-size=5");
        LockRegistry registry = a.getBean(LockRegistry.class);
        JdbcTemplate jdbc = a.getBean(JdbcTemplate.class);
        AtomicBoolean over = new AtomicBoolean();
        List<Future<?>> busy = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            busy.add(threads.submit(() -> {
                while (!over.get()) {
                    jdbc.queryForObject("SELECT count(*) FROM counter", Long.class);
                }
            }));
        }
        for (int i = 0; i < 200; i++) {
            LockHandle lock = registry.tryAcquire(LockRequest.of("name")).orElseThrow();
            assertThat(lock.release()).isTrue();
            assertThat(jdbc.queryForObject(KEYS, Long.class)).isZero();
        }
        over.set(true);
        for (Future<?> one : busy) {
            one.get(5, TimeUnit.SECONDS);
        }
    }

    @Test
    void asManyJobsAsThePoolHasConnectionsWorkWithItAndAWaiterBlocksNoQuery() throws Exception {
        ConfigurableApplicationContext a =
                start("a", Application.class, ADVISORY, "spring.datasource.hikari.maximum-pool-size=2");
        LockRegistry registry = a.getBean(LockRegistry.class);
        JdbcTemplate jdbc = a.getBean(JdbcTemplate.class);
        registry.runOnce("warm", () -> jdbc.queryForObject("SELECT 1", Integer.class));
        CyclicBarrier bothHold = new CyclicBarrier(2);
        CountDownLatch end = new CountDownLatch(1);
        CountDownLatch worked = new CountDownLatch(2);
        List<Future<?>> jobs = new ArrayList<>();
        for (String name : List.of("1", "2")) {
            jobs.add(threads.submit(registry.asCallable(LockRequest.of(name), () -> {
                bothHold.await();
                jdbc.queryForObject("SELECT 1", Integer.class);
                worked.countDown();
                end.await();
                return true;
            })));
        }
        assertThat(worked.await(1, TimeUnit.SECONDS)).isTrue();

        Future<?> waiter = threads.submit(() -> {
            registry.runBlocking("1", () -> {});
            return null;
        });
        for (int i = 0; i < 10; i++) {
            long asked = System.nanoTime();
            List<Future<Integer>> queries = new ArrayList<>();
            for (int n = 0; n < 2; n++) {
                queries.add(threads.submit(
                        () -> jdbc.queryForObject("SELECT 1 FROM (SELECT pg_sleep(0.05)) AS x", Integer.class)));
            }
            for (Future<Integer> query : queries) {
                assertThat(query.get(5, TimeUnit.SECONDS)).isEqualTo(1);
            }
            assertThat(Duration.ofNanos(System.nanoTime() - asked)).isLessThan(Duration.ofSeconds(1));
        }
        assertThat(waiter.isDone()).isFalse();
        end.countDown();
        for (Future<?> job : jobs) {
            job.get(5, TimeUnit.SECONDS);
        }
        waiter.get(5, TimeUnit.SECONDS);
    }
}
