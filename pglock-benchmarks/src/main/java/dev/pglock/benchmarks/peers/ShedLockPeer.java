package dev.pglock.benchmarks.peers;

import com.zaxxer.hikari.HikariDataSource;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.support.KeepAliveLockProvider;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.JdbcTemplate;

/** ShedLock over JdbcTemplate with the database's time, as its manual recommends for PostgreSQL. */
final class ShedLockPeer implements Peer {

    static final String SCHEMA = """
            CREATE TABLE shedlock (name varchar(64) NOT NULL, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL,
              locked_by varchar(255) NOT NULL, PRIMARY KEY (name));
            """;

    /** The keep-alive refuses less. */
    private static final Duration LEAST_KEPT_ALIVE = Duration.ofSeconds(30);

    private final HikariDataSource pool;
    private final LockProvider provider;
    private final Duration lease;
    private final ScheduledExecutorService keepAlive;

    private ShedLockPeer(
            HikariDataSource pool, LockProvider provider, Duration lease, ScheduledExecutorService keepAlive) {
        this.pool = pool;
        this.provider = provider;
        this.lease = lease;
        this.keepAlive = keepAlive;
    }

    static ShedLockPeer open(Place place, boolean keptAlive) {
        HikariDataSource pool = place.pool();
        ScheduledExecutorService keepAlive = Executors.newSingleThreadScheduledExecutor();
        JdbcTemplateLockProvider plain = new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
                .withJdbcTemplate(new JdbcTemplate(pool))
                .usingDbTime()
                .withLockedByValue(place.label())
                .build());
        boolean longEnough = place.lease().compareTo(LEAST_KEPT_ALIVE) >= 0;
        return new ShedLockPeer(
                pool,
                keptAlive ? new KeepAliveLockProvider(plain, keepAlive) : plain,
                keptAlive && !longEnough ? LEAST_KEPT_ALIVE : place.lease(),
                keepAlive);
    }

    private static final class OneHeld implements Held {

        private SimpleLock lock;

        OneHeld(SimpleLock lock) {
            this.lock = lock;
        }

        void extend(Duration lease) {
            lock = lock.extend(lease, Duration.ZERO).orElseThrow();
        }

        @Override
        public void unlock() {
            lock.unlock();
        }
    }

    @Override
    public @Nullable Held tryLock(String name) {
        return provider.lock(new LockConfiguration(Instant.now(), name, lease, Duration.ZERO))
                .map(OneHeld::new)
                .orElse(null);
    }

    /** It has no waiting: whoever wants it writes this loop. */
    @Override
    public Held lock(String name) throws InterruptedException {
        for (Held held = tryLock(name); ; held = tryLock(name)) {
            if (held != null) {
                return held;
            }
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    @Override
    public void renew(List<Held> held) {
        held.forEach(one -> ((OneHeld) one).extend(lease));
    }

    @Override
    public void close() {
        keepAlive.shutdownNow();
        pool.close();
    }
}
