package dev.pglock.benchmarks.peers;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.advisory.AdvisorySettings;
import dev.pglock.advisory.AdvisoryStore;
import dev.pglock.advisory.LockSessions;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.jdbc.JdbcTimeouts;
import dev.pglock.jdbc.NotifiedWakeUps;
import dev.pglock.jdbc.OwnConnections;
import dev.pglock.jdbc.SessionFactory;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.lease.LeaseStore;
import dev.pglock.lease.LeaseTable;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.LockStore;
import dev.pglock.store.LockStore.Caller;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.StoreIdentity;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** This project, put together as the auto-configuration does it. */
final class PglockPeer implements Peer {

    private static final String NAMESPACE = "benchmark";
    private static final LeaseTable TABLE = LeaseTable.parse("public.pglock_lease");
    private static final int MAX_LOCKS = 20_000;
    private static final int CHUNK = 1000;

    static final String SCHEMA = LeaseSchema.ddl(TABLE) + ";\n";

    private final LockEngine engine;
    private final LockStrategy strategy;
    private final LockStore store;
    private final Duration lease;

    private PglockPeer(LockEngine engine, LockStore store, Duration lease) {
        this.engine = engine;
        this.strategy = store.strategy();
        this.store = store;
        this.lease = lease;
    }

    static PglockPeer open(Place place, LockStrategy strategy) {
        StoreIdentity identity = StoreIdentity.random(NAMESPACE, place.label());
        JdbcTimeouts timeouts = JdbcTimeouts.of(place.lease());
        SessionFactory sessions = new SessionFactory(
                () -> ConnectionSpec.of(place.url(), place.username(), place.password()),
                SessionSettings.of(NAMESPACE, place.label(), timeouts));
        OwnConnections connections = new OwnConnections(sessions, place.connections());
        LeaseStore leases = new LeaseStore(connections, identity, TABLE, timeouts, Duration.ZERO);
        AdvisoryStore sessionLocks = new AdvisoryStore(
                new LockSessions(sessions, place.lease()),
                connections,
                identity,
                KeyDerivation.SHA256,
                new AdvisorySettings(TABLE, place.lease(), MAX_LOCKS, timeouts));
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(NAMESPACE, place.label(), strategy)
                        .withLease(place.lease(), null))
                .store(leases)
                .store(sessionLocks)
                .wakeUps(new NotifiedWakeUps(sessions))
                .build();
        return new PglockPeer(engine, strategy == LockStrategy.LEASE ? leases : sessionLocks, place.lease());
    }

    private LockRequest request(String name) {
        return LockRequest.of(name).strategy(strategy).waitTimeout(Duration.ofMinutes(5));
    }

    private record OneHeld(LockHandle handle) implements Held {

        @Override
        public void unlock() {
            handle.release();
        }
    }

    @Override
    public @Nullable Held tryLock(String name) {
        return engine.tryAcquire(request(name)).map(OneHeld::new).orElse(null);
    }

    @Override
    public Held lock(String name) throws InterruptedException {
        return new OneHeld(engine.acquire(request(name)));
    }

    /** As a heartbeat does it, and beside the engine's own. */
    @Override
    public void renew(List<Held> held) {
        for (int from = 0; from < held.size(); from += CHUNK) {
            List<Renewal> renewals = held.subList(from, Math.min(held.size(), from + CHUNK)).stream()
                    .map(one -> ((OneHeld) one).handle)
                    .map(handle -> new Renewal(handle.name(), handle.fence(), lease, null))
                    .toList();
            for (RenewalAnswer answer : store.renew(renewals, lease, Caller.HEARTBEAT)) {
                if (answer.result() != RenewalAnswer.Result.RENEWED) {
                    throw new IllegalStateException("Not renewed: " + answer);
                }
            }
        }
    }

    @Override
    public void close() {
        engine.close();
    }
}
