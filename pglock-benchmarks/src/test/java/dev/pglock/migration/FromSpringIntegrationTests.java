package dev.pglock.migration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockRegistry;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;

/** Three releases of a service, two of which run at a time. */
class FromSpringIntegrationTests {

    private final TestDatabase database = PostgresServer.shared().newDatabase();
    private final List<Replica> replicas = new ArrayList<>();
    private final AtomicInteger inside = new AtomicInteger();
    private final List<String> overlaps = new CopyOnWriteArrayList<>();

    @BeforeEach
    void prepare() {
        database.execute("""
                CREATE TABLE int_lock (lock_key char(36) NOT NULL, region varchar(100) NOT NULL, client_id char(36),
                  created_date timestamp NOT NULL, expired_after timestamp NOT NULL,
                  CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region));
                """);
    }

    @AfterEach
    void stop() throws InterruptedException {
        for (Replica replica : List.copyOf(replicas)) {
            replica.stop();
        }
        database.close();
    }

    @Test
    void aRollingDeployByWayOfBothLocksNeverRunsTwoAtATimeAndEveryReplicaHasItsTurn() throws Exception {
        Replica old = start(0);
        Replica both = start(1);
        awaitTurns(old, both);
        old.stop();

        Replica other = start(1);
        awaitTurns(both, other);
        both.stop();

        Replica newest = start(2);
        awaitTurns(other, newest);
        assertThat(overlaps).isEmpty();
        assertThat(replicas)
                .allSatisfy(replica -> assertThat(replica.thread.isAlive()).isTrue());
    }

    private static void awaitTurns(Replica one, Replica other) {
        int turnsOfOne = one.turns.get();
        int turnsOfOther = other.turns.get();
        await().atMost(Duration.ofSeconds(60))
                .until(() -> one.turns.get() > turnsOfOne + 20 && other.turns.get() > turnsOfOther + 20);
    }

    private Replica start(int release) {
        Replica replica = new Replica(release);
        replicas.add(replica);
        return replica;
    }

    private void rollup() {
        if (inside.incrementAndGet() > 1) {
            overlaps.add(Thread.currentThread().getName());
        }
        try {
            TimeUnit.MILLISECONDS.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            inside.decrementAndGet();
        }
    }

    private final class Replica {

        final AtomicInteger turns = new AtomicInteger();
        final ConfigurableApplicationContext context;
        final Thread thread;
        volatile boolean stopping;

        Replica(int release) {
            context = new SpringApplicationBuilder(Shop.class)
                    .web(WebApplicationType.NONE)
                    .bannerMode(Banner.Mode.OFF)
                    .registerShutdownHook(false)
                    .run(
                            "--spring.application.name=shop",
                            "--spring.datasource.url=" + database.url(),
                            "--spring.datasource.username=" + database.username(),
                            "--spring.datasource.password=" + database.password());
            thread = new Thread(() -> work(release), "release " + release);
            thread.start();
        }

        private void work(int release) {
            while (!stopping) {
                if (attempt(release)) {
                    turns.incrementAndGet();
                }
                try {
                    TimeUnit.MILLISECONDS.sleep(3);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }

        private boolean attempt(int release) {
            JdbcLockRegistry oldLocks = context.getBean(JdbcLockRegistry.class);
            LockRegistry locks = context.getBean(LockRegistry.class);
            return switch (release) {
                case 0 -> release0(oldLocks);
                case 1 -> release1(oldLocks, locks);
                default -> locks.runOnce("rollup", FromSpringIntegrationTests.this::rollup);
            };
        }

        private boolean release0(JdbcLockRegistry oldLocks) {
            Lock old = oldLocks.obtain("rollup");
            if (!old.tryLock()) {
                return false;
            }
            try {
                rollup();
                return true;
            } finally {
                old.unlock();
            }
        }

        private boolean release1(JdbcLockRegistry oldLocks, LockRegistry locks) {
            Lock old = oldLocks.obtain("rollup");
            if (!old.tryLock()) {
                return false;
            }
            try {
                return locks.runOnce("rollup", FromSpringIntegrationTests.this::rollup);
            } finally {
                old.unlock();
            }
        }

        void stop() throws InterruptedException {
            stopping = true;
            thread.join();
            context.close();
            replicas.remove(this);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Shop {

        @Bean
        DefaultLockRepository lockRepository(DataSource dataSource) {
            return new DefaultLockRepository(dataSource);
        }

        @Bean
        JdbcLockRegistry lockRegistry(LockRepository repository) {
            return new JdbcLockRegistry(repository);
        }
    }
}
