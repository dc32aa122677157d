package dev.pglock.test;

import dev.pglock.CompletedVersion;
import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockRegistry;
import dev.pglock.LockState;
import dev.pglock.RunOutcome;
import java.util.Optional;
import org.assertj.core.api.AbstractAssert;
import org.jspecify.annotations.Nullable;

/**
 * Assertions about one lock. Each reads it once, and may throw {@link dev.pglock.LockStorageException} if the database
 * fails.
 *
 * @see LockAssertions#assertThatLock
 */
public final class LockAssert extends AbstractAssert<LockAssert, LockRegistry> {

    private final String name;

    LockAssert(LockRegistry registry, String name) {
        super(registry, LockAssert.class);
        this.name = name;
        describedAs("lock '%s'", name);
    }

    /**
     * Somebody holds it.
     *
     * @return this
     */
    public LockAssert isHeld() {
        if (state() != LockState.HELD) {
            throw failure("Expected to be held, but %s", told());
        }
        return this;
    }

    /**
     * That replica holds it.
     *
     * @param replica its label, {@code pglock.instance-id}
     * @return this
     */
    public LockAssert isHeldBy(String replica) {
        String holder = find().map(LockInfo::holder).orElse(null);
        if (state() != LockState.HELD || !replica.equals(holder)) {
            throw failure("Expected to be held by '%s', but %s", replica, told());
        }
        return this;
    }

    /**
     * Nobody holds it: it is free, its holder's lease has ended, or nobody has ever asked for it. A lock that is kept free, by
     * a {@code minHold} or because an operator has paused it, is not held either.
     *
     * @return this
     */
    public LockAssert isNotHeld() {
        if (state() == LockState.HELD) {
            throw failure("Expected not to be held, but %s", told());
        }
        return this;
    }

    /**
     * The next to ask would be granted it: nobody holds it and nothing keeps others out. Whether a tick has been done is
     * another question.
     *
     * @return this
     */
    public LockAssert isFree() {
        LockState state = state();
        if (state != null && state != LockState.FREE && state != LockState.EXPIRED) {
            throw failure("Expected to be free, but %s", told());
        }
        return this;
    }

    /**
     * An operator has paused it.
     *
     * @return this
     */
    public LockAssert isPaused() {
        if (find().map(LockInfo::paused).isEmpty()) {
            throw failure("Expected to be paused, but %s", told());
        }
        return this;
    }

    /**
     * Its last run that is remembered ended like that. By advisory locks a run is remembered only where something of it has
     * to be.
     *
     * @param outcome how it ended
     * @return this
     */
    public LockAssert wasRun(RunOutcome outcome) {
        LastRun last = lastRun();
        if (last == null || last.outcome() != outcome) {
            throw failure("Expected a last run that has %s, but %s", outcome, told());
        }
        return this;
    }

    /**
     * Its last run that is remembered was on that replica, however it ended.
     *
     * @param replica its label, {@code pglock.instance-id}
     * @return this
     */
    public LockAssert wasRunBy(String replica) {
        LastRun last = lastRun();
        if (last == null || !replica.equals(last.holder())) {
            throw failure("Expected a last run by '%s', but %s", replica, told());
        }
        return this;
    }

    /**
     * No run of it is remembered.
     *
     * @return this
     */
    public LockAssert wasNotRun() {
        if (lastRun() != null) {
            throw failure("Expected not to have been run, but %s", told());
        }
        return this;
    }

    /**
     * A version has succeeded, once for ever.
     *
     * @param version of {@code @RunOnce}
     * @return this
     */
    public LockAssert hasCompleted(String version) {
        if (find().stream()
                .flatMap(info -> info.completed().stream())
                .map(CompletedVersion::version)
                .noneMatch(version::equals)) {
            throw failure("Expected version '%s' to have succeeded, but %s", version, told());
        }
        return this;
    }

    private Optional<LockInfo> find() {
        isNotNull();
        return actual.find(name);
    }

    private @Nullable LockState state() {
        return find().map(LockInfo::state).orElse(null);
    }

    private @Nullable LastRun lastRun() {
        return find().map(LockInfo::lastRun).orElse(null);
    }

    private String told() {
        return find().map(info -> "it is " + info).orElse("nobody has ever asked for it");
    }
}
