package dev.pglock.benchmarks.peers;

import com.zaxxer.hikari.HikariDataSource;
import java.util.List;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;

/** Spring Integration's JdbcLockRegistry with the ON CONFLICT variant of its insert, which its manual offers for PostgreSQL. */
final class SpringIntegrationPeer implements Peer {

    static final String SCHEMA = """
            CREATE TABLE int_lock (lock_key char(36) NOT NULL, region varchar(100) NOT NULL, client_id char(36),
              created_date timestamp NOT NULL, expired_after timestamp NOT NULL,
              CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region));
            """;

    private final HikariDataSource pool;
    private final GenericApplicationContext context;
    private final DefaultLockRepository repository;
    private final JdbcLockRegistry registry;

    private SpringIntegrationPeer(
            HikariDataSource pool,
            GenericApplicationContext context,
            DefaultLockRepository repository,
            JdbcLockRegistry registry) {
        this.pool = pool;
        this.context = context;
        this.repository = repository;
        this.registry = registry;
    }

    static SpringIntegrationPeer open(Place place) {
        HikariDataSource pool = place.pool();
        GenericApplicationContext context = new GenericApplicationContext();
        context.registerBean(PlatformTransactionManager.class, () -> new JdbcTransactionManager(pool));
        context.refresh();
        DefaultLockRepository repository = new DefaultLockRepository(pool);
        repository.setInsertQuery(repository.getInsertQuery() + " ON CONFLICT DO NOTHING");
        repository.setApplicationContext(context);
        repository.afterPropertiesSet();
        repository.afterSingletonsInstantiated();
        repository.start();
        JdbcLockRegistry registry = new JdbcLockRegistry(repository, place.lease());
        registry.setCacheCapacity(20_000);
        return new SpringIntegrationPeer(pool, context, repository, registry);
    }

    private record OneHeld(String name, Lock lock) implements Held {

        @Override
        public void unlock() {
            lock.unlock();
        }
    }

    @Override
    public @Nullable Held tryLock(String name) {
        Lock lock = registry.obtain(name);
        return lock.tryLock() ? new OneHeld(name, lock) : null;
    }

    @Override
    public Held lock(String name) {
        Lock lock = registry.obtain(name);
        lock.lock();
        return new OneHeld(name, lock);
    }

    @Override
    public void renew(List<Held> held) {
        for (Held one : held) {
            registry.renewLock(((OneHeld) one).name);
        }
    }

    @Override
    public void close() {
        repository.close();
        context.close();
        pool.close();
    }
}
