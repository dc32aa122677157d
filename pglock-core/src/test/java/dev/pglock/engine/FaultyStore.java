package dev.pglock.engine;

import dev.pglock.LockInfo;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A store between engine and storage that fails or hangs when a test says so, and counts what it is asked. */
final class FaultyStore implements LockStore {

    private final LockStore delegate;
    final AtomicInteger claims = new AtomicInteger();
    final AtomicInteger renewStatements = new AtomicInteger();
    final AtomicInteger finds = new AtomicInteger();
    final AtomicInteger closed = new AtomicInteger();
    volatile Runnable afterDenial = () -> {};
    volatile boolean failClaims;
    volatile boolean failRenewals;
    volatile boolean failReleases;
    volatile @Nullable CountDownLatch renewalsHang;
    volatile @Nullable CountDownLatch grantsHang;
    final AtomicInteger probes = new AtomicInteger();

    FaultyStore(LockStore delegate) {
        this.delegate = delegate;
    }

    private static void failIf(boolean failing) {
        if (failing) {
            throw new LockStorageException("The database is away", null);
        }
    }

    private static void await(@Nullable CountDownLatch hang) {
        if (hang != null) {
            try {
                hang.await();
            } catch (InterruptedException e) {
                throw new LockStorageException("interrupted", e);
            }
        }
    }

    @Override
    public LockStrategy strategy() {
        return delegate.strategy();
    }

    @Override
    public ClaimAnswer claim(Claim claim) {
        claims.incrementAndGet();
        failIf(failClaims);
        ClaimAnswer answer = delegate.claim(claim);
        if (answer instanceof ClaimAnswer.Denied) {
            afterDenial.run();
        } else {
            await(grantsHang);
        }
        return answer;
    }

    @Override
    public List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        renewStatements.incrementAndGet();
        await(renewalsHang);
        failIf(failRenewals);
        return delegate.renew(renewals, budget, caller);
    }

    @Override
    public boolean release(Release release) {
        failIf(failReleases);
        return delegate.release(release);
    }

    @Override
    public Optional<LockInfo> find(String name) {
        finds.incrementAndGet();
        return delegate.find(name);
    }

    @Override
    public List<LockInfo> findAll() {
        return delegate.findAll();
    }

    @Override
    public boolean pause(String name, @Nullable String reason) {
        return delegate.pause(name, reason);
    }

    @Override
    public boolean resign(String name, long key, String reason) {
        return delegate.resign(name, key, reason);
    }

    @Override
    public Map<Integer, List<String>> waiting() {
        return delegate.waiting();
    }

    @Override
    public boolean forceRelease(String name, long key, boolean now) {
        return delegate.forceRelease(name, key, now);
    }

    @Override
    public void abandon(Tenancy held) {
        delegate.abandon(held);
    }

    @Override
    public boolean probe() {
        probes.incrementAndGet();
        failIf(failClaims);
        return true;
    }

    @Override
    public void tidyUp() {
        delegate.tidyUp();
    }

    @Override
    public @Nullable Duration untilTidyUp() {
        return delegate.untilTidyUp();
    }

    @Override
    public void close() {
        closed.incrementAndGet();
        delegate.close();
    }
}
