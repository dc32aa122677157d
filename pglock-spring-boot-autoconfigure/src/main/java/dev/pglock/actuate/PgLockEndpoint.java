package dev.pglock.actuate;

import dev.pglock.LastRun;
import dev.pglock.LockInfo;
import dev.pglock.LockNames;
import dev.pglock.LockRefusedException;
import dev.pglock.LockRegistry;
import dev.pglock.LockState;
import dev.pglock.LockStrategy;
import dev.pglock.RunOutcome;
import java.security.Principal;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.InvalidEndpointRequestException;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.Selector.Match;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;

/**
 * The endpoint {@code pglock}: who holds what, and what operators may do about it. Read-only unless {@code
 * management.endpoint.pglock.access} is {@code unrestricted}. Any replica answers for all; what is done is written to its log,
 * with the reason and, where somebody has signed in, by whom.
 */
@Endpoint(id = "pglock", defaultAccess = Access.READ_ONLY)
public final class PgLockEndpoint {

    private final Supplier<LockRegistry> registry;
    private final Supplier<Map<String, Instant>> nextDue;
    private final Predicate<String> pausedHere;

    /**
     * Creates it. None is asked before somebody asks here.
     *
     * @param registry the locks
     * @param nextDue when locked methods are due next on this replica, by lock name
     * @param pausedHere whether the configuration of this replica pauses what has a lock of that name
     */
    public PgLockEndpoint(
            Supplier<LockRegistry> registry, Supplier<Map<String, Instant>> nextDue, Predicate<String> pausedHere) {
        this.registry = registry;
        this.nextDue = nextDue;
        this.pausedHere = pausedHere;
    }

    /**
     * All locks of the namespace.
     *
     * @return by name
     */
    @ReadOperation
    public Locks locks() {
        Map<String, Instant> due = nextDue.get();
        return new Locks(
                registry.get().findAll().stream().map(info -> lock(info, due)).toList());
    }

    /**
     * One lock.
     *
     * @param name its name; slashes are part of it
     * @return null if it was never seen
     */
    @ReadOperation
    public @Nullable Lock lock(@Selector(match = Match.ALL_REMAINING) String... name) {
        String whole = whole(name);
        return registry.get().find(whole).map(info -> lock(info, nextDue.get())).orElse(null);
    }

    private Lock lock(LockInfo info, Map<String, Instant> due) {
        String paused = info.paused();
        if (paused == null && pausedHere.test(info.name())) {
            paused = "on this replica, by its configuration: pglock.locks has 'mode: paused' for it";
        }
        return Lock.of(info, paused, due.get(info.name()));
    }

    /**
     * Pauses a lock, resumes it, or asks its holder to give it back.
     *
     * @param who who asks
     * @param action {@code pause}, {@code resume} or {@code resign}
     * @param reason why; goes into the log
     * @param name the lock's name
     * @return what was done
     */
    @WriteOperation
    public Done act(
            SecurityContext who, String action, String reason, @Selector(match = Match.ALL_REMAINING) String... name) {
        String whole = whole(name);
        String why = reason(reason, who);
        LockRegistry locks = registry.get();
        boolean done = switch (action.toLowerCase(Locale.ROOT)) {
            case "pause" -> pause(locks, whole, why);
            case "resume" -> refusedAs400(() -> locks.resume(whole, why));
            case "resign" -> refusedAs400(() -> locks.resign(whole, why));
            default ->
                throw new InvalidEndpointRequestException(
                        "There is no action '" + action + "'", "The action must be pause, resume or resign");
        };
        return new Done(whole, action.toLowerCase(Locale.ROOT), done);
    }

    private static boolean pause(LockRegistry locks, String name, String reason) {
        return refusedAs400(() -> {
            locks.pause(name, reason);
            return true;
        });
    }

    /**
     * Releases a lock by force: its holder is told at its next heartbeat, and others are kept out until it must have been.
     *
     * @param who who asks
     * @param reason why; goes into the log
     * @param now whether others may be granted it at once; for an advisory lock nothing else is possible
     * @param name the lock's name
     * @return what was done
     */
    @DeleteOperation
    public Done forceRelease(
            SecurityContext who,
            String reason,
            @Nullable Boolean now,
            @Selector(match = Match.ALL_REMAINING) String... name) {
        String whole = whole(name);
        String why = reason(reason, who);
        boolean atOnce = Boolean.TRUE.equals(now);
        return new Done(
                whole, "force-release", refusedAs400(() -> registry.get().forceRelease(whole, why, atOnce)));
    }

    private interface Action {
        boolean run();
    }

    /** What cannot be done as it was asked for: the message says how it can. */
    private static boolean refusedAs400(Action action) {
        try {
            return action.run();
        } catch (LockRefusedException e) {
            String message = String.valueOf(e.getMessage());
            throw new InvalidEndpointRequestException(message, message, e);
        }
    }

    private static String whole(String... name) {
        try {
            return LockNames.normalise(String.join("/", name));
        } catch (IllegalArgumentException e) {
            String message = String.valueOf(e.getMessage());
            throw new InvalidEndpointRequestException(message, message, e);
        }
    }

    private static String reason(String reason, SecurityContext who) {
        if (reason.isBlank()) {
            throw new InvalidEndpointRequestException("The reason is blank", "A reason must be given");
        }
        Principal principal = who.getPrincipal();
        return principal == null ? reason : reason + " (by " + principal.getName() + ")";
    }

    /**
     * All locks.
     *
     * @param locks by name
     */
    public record Locks(List<Lock> locks) implements OperationResponseBody {}

    /**
     * One lock. All instants are the server's, but {@code nextDue}.
     *
     * @param name its name
     * @param strategy by which it is kept
     * @param state its state
     * @param paused why it is paused; null: it is not. What the configuration of the replica that answers has paused is told
     *     here too, but is no state of the lock
     * @param holder the label of the holder
     * @param since when the last tenure began
     * @param until when it ends unless it is renewed, or when the hold ends
     * @param fence the fence of the last tenure
     * @param data its payload
     * @param waiting the labels of replicas that wait for it
     * @param lastRun the last run that its holder ended
     * @param nextDue when the replica that answers is to ask for it next, by its scheduler
     * @param completed the versions that have succeeded
     */
    public record Lock(
            String name,
            LockStrategy strategy,
            LockState state,
            @Nullable String paused,
            @Nullable String holder,
            @Nullable Instant since,
            @Nullable Instant until,
            @Nullable Long fence,
            @Nullable String data,
            List<String> waiting,
            @Nullable Run lastRun,
            @Nullable Instant nextDue,
            List<String> completed)
            implements OperationResponseBody {

        static Lock of(LockInfo info, @Nullable String paused, @Nullable Instant nextDue) {
            return new Lock(
                    info.name(),
                    info.strategy(),
                    info.state(),
                    paused,
                    info.holder(),
                    info.acquiredAt(),
                    info.expiresAt(),
                    info.fence(),
                    info.data(),
                    info.waiting(),
                    info.lastRun() == null ? null : Run.of(info.lastRun()),
                    nextDue,
                    info.completed().stream().map(version -> version.version()).toList());
        }
    }

    /**
     * A run.
     *
     * @param startedAt when it began
     * @param took how long it took
     * @param holder where it ran
     * @param outcome how it ended
     * @param error the class name of what it threw
     */
    public record Run(
            Instant startedAt,
            Duration took,
            @Nullable String holder,
            RunOutcome outcome,
            @Nullable String error) {

        static Run of(LastRun run) {
            return new Run(
                    run.startedAt(),
                    Duration.between(run.startedAt(), run.finishedAt()),
                    run.holder(),
                    run.outcome(),
                    run.error());
        }
    }

    /**
     * What was done.
     *
     * @param name the lock
     * @param action what was asked for
     * @param done false: there was nothing to do, because nobody held it or it was not paused
     */
    public record Done(String name, String action, boolean done) implements OperationResponseBody {}
}
