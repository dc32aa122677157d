package dev.pglock.local;

import dev.pglock.CompletedVersion;
import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockStrategy;
import dev.pglock.store.Claim;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore;
import dev.pglock.store.Release;
import dev.pglock.store.Renewal;
import dev.pglock.store.RenewalAnswer;
import dev.pglock.store.ServerClock;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickGuard;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Keeps locks in memory. Nothing here blocks, and nothing fails. Thread-safe. */
public final class LocalStore implements LockStore {

    private static final Duration RETENTION = Duration.ofHours(1);

    private final StoreIdentity identity;
    private final LocalSpace space;
    private final ServerClock clock = new ServerClock();

    /**
     * Creates the store of one replica.
     *
     * @param identity who claims
     * @param space the memory; stores that share it exclude each other
     */
    public LocalStore(StoreIdentity identity, LocalSpace space) {
        this.identity = identity;
        this.space = space;
    }

    @Override
    public LockStrategy strategy() {
        return LockStrategy.LOCAL;
    }

    @Override
    public ClaimAnswer claim(Claim claim) {
        return space.<ClaimAnswer>atomically(rows -> {
            LocalRow row = rows.computeIfAbsent(key(claim.name()), key -> new LocalRow());
            long asked = System.nanoTime();
            Instant tickTime = space.tickTime();
            clock.learn(asked, tickTime, System.nanoTime());
            return claim(claim, TickGuard.of(claim.tick(), clock), row, space.now(), tickTime);
        });
    }

    private ClaimAnswer claim(Claim claim, TickGuard tick, LocalRow row, Instant now, Instant tickTime) {
        Denial denial = denial(claim, tick, row, now, tickTime);
        if (denial != null) {
            return new ClaimAnswer.Denied(denial);
        }
        row.holder = identity.holder();
        row.holderLabel = identity.label();
        row.fence = space.nextFence();
        row.acquiredAt = now;
        row.expiresAt = now.plus(claim.lease());
        row.holdUntil = null;
        row.data = claim.data();
        row.resign = null;
        if (tick.trigger() != null) {
            row.ticks.put(tick.trigger(), tick.granted(row.ticks.get(tick.trigger()), tickTime));
        }
        return new ClaimAnswer.Granted(row.fence, row.acquiredAt, row.expiresAt);
    }

    /** A row that bears our own name is in nobody's way: the engine has decided that this process does not hold it. */
    private @Nullable Denial denial(Claim claim, TickGuard tick, LocalRow row, Instant now, Instant tickTime) {
        if (row.paused != null) {
            return Denial.of(claim.name(), DenialReason.PAUSED);
        }
        if (row.isLive(now) && !identity.holder().equals(row.holder)) {
            Duration left = Duration.between(now, row.expiresAt);
            return new Denial(claim.name(), DenialReason.HELD, row.holderLabel, row.fence, left);
        }
        if (row.holdUntil != null && row.isOnHold(now)) {
            Duration left = Duration.between(now, row.holdUntil);
            return new Denial(claim.name(), DenialReason.HOLD, null, row.fence, left);
        }
        if (claim.version() != null && row.completed.containsKey(claim.version())) {
            return Denial.of(claim.name(), DenialReason.DONE);
        }
        if (tick.isDone(row.remembered(tick), tickTime)) {
            return Denial.of(claim.name(), DenialReason.TICK_DONE);
        }
        return null;
    }

    @Override
    public List<RenewalAnswer> renew(List<Renewal> renewals, Duration budget, Caller caller) {
        return space.atomically(rows -> {
            Instant now = space.now();
            return renewals.stream()
                    .map(renewal -> renew(renewal, rows.get(key(renewal.name())), now))
                    .toList();
        });
    }

    private RenewalAnswer renew(Renewal renewal, @Nullable LocalRow row, Instant now) {
        if (row == null || !row.belongsTo(identity.holder(), renewal.fence()) || !row.isLive(now)) {
            return new RenewalAnswer(renewal.name(), renewal.fence(), RenewalAnswer.Result.LOST, null);
        }
        Instant until = now.plus(renewal.lease());
        row.expiresAt = until.isAfter(row.expiresAt) ? until : row.expiresAt;
        Renewal.Payload payload = renewal.payload();
        if (payload != null) {
            row.data = payload.data();
        }
        return new RenewalAnswer(
                renewal.name(), renewal.fence(), RenewalAnswer.Result.RENEWED, row.expiresAt, row.resign);
    }

    @Override
    public boolean release(Release release) {
        boolean released = space.atomically(rows -> {
            Instant now = space.now();
            LocalRow row = rows.get(key(release.name()));
            if (row == null || !row.belongsTo(identity.holder(), release.fence())) {
                return false;
            }
            row.holder = null;
            row.holdUntil = release.minHold() == null ? null : row.acquiredAt.plus(release.minHold());
            row.lastRun = new LastRun(row.holderLabel, row.acquiredAt, now, release.outcome(), release.error());
            row.lastEnd = space.tickTime();
            String completed = release.completed();
            if (completed != null) {
                Duration took = Duration.between(row.acquiredAt, now);
                row.completed.put(completed, new CompletedVersion(completed, now, row.holderLabel, took));
            }
            return true;
        });
        space.tell(release.key());
        return released;
    }

    @Override
    public Optional<LockInfo> find(String name) {
        return space.atomically(
                rows -> Optional.ofNullable(rows.get(key(name))).map(row -> row.info(name, space.now())));
    }

    @Override
    public List<LockInfo> findAll() {
        return space.atomically(rows -> rows.entrySet().stream()
                .filter(entry -> entry.getKey().namespace().equals(identity.namespace()))
                .map(entry -> entry.getValue().info(entry.getKey().name(), space.now()))
                .sorted(Comparator.comparing(LockInfo::name))
                .toList());
    }

    @Override
    public boolean forceRelease(String name, long key, boolean now) {
        boolean released = space.atomically(rows -> {
            LocalRow row = rows.get(key(name));
            if (row == null || !row.isLive(space.now())) {
                return false;
            }
            row.holder = null;
            row.fence = space.nextFence();
            row.holdUntil = now ? null : row.expiresAt;
            return true;
        });
        space.tell(key);
        return released;
    }

    @Override
    public boolean pause(String name, @Nullable String reason) {
        return space.atomically(rows -> {
            LocalRow row = rows.computeIfAbsent(key(name), key -> new LocalRow());
            boolean changed = (row.paused == null) != (reason == null);
            row.paused = reason;
            return changed;
        });
    }

    @Override
    public boolean resign(String name, long key, String reason) {
        return space.atomically(rows -> {
            LocalRow row = rows.get(key(name));
            boolean held = row != null && row.isLive(space.now());
            if (row != null && held) {
                row.resign = reason;
            }
            return held;
        });
    }

    @Override
    public void tidyUp() {
        space.atomically(rows -> rows.values().removeIf(row -> row.isForgettable(space.now(), RETENTION)));
    }

    @Override
    public void close() {
        // Memory needs no closing, and what is still held ends by its expiry, as it would in a database.
    }

    private LocalSpace.Key key(String name) {
        return new LocalSpace.Key(identity.namespace(), name);
    }
}
