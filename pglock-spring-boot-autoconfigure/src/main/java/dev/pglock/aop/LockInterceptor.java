package dev.pglock.aop;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockAttempt;
import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.Tick;
import dev.pglock.annotation.IfHeld;
import java.util.function.Supplier;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;

/**
 * Runs a locked method under its lock, or does what its annotation says when the lock is not to be had. Without proof of
 * the lock the body does not run.
 */
final class LockInterceptor implements MethodInterceptor {

    private static final Logger log = LoggerFactory.getLogger(LockInterceptor.class);

    private final LockSpecs specs;
    private final Ticks ticks;
    private final Supplier<LockedMethodSettings> settings;
    private final Supplier<LockRegistry> registry;
    private final RefusedTicks refused = new RefusedTicks();

    LockInterceptor(
            LockSpecs specs, Ticks ticks, Supplier<LockedMethodSettings> settings, Supplier<LockRegistry> registry) {
        this.specs = specs;
        this.ticks = ticks;
        this.settings = settings;
        this.registry = registry;
    }

    @Override
    public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
        Object target = invocation.getThis();
        Class<?> type = target == null ? invocation.getMethod().getDeclaringClass() : AopUtils.getTargetClass(target);
        LockSpec spec = specs.find(invocation.getMethod(), type);
        if (spec == null) {
            return invocation.proceed();
        }
        return spec.result().isPublisher()
                ? ReactiveCalls.locked(
                        spec.result(),
                        (ProxyMethodInvocation) invocation,
                        spec.ifHeld() == IfHeld.WAIT,
                        () -> onSubscribe(spec))
                : call(spec, ticks.of(spec), LockedBody.of(invocation, spec.result()));
    }

    /** A scheduled publisher is assembled once, at start-up: each of its subscriptions is a tick, and asks here for it. */
    private ReactiveCalls.Call onSubscribe(LockSpec spec) {
        Firing firing = ticks.of(spec);
        return body -> call(spec, firing, body);
    }

    private @Nullable Object call(LockSpec spec, @Nullable Firing firing, LockedBody body) throws Throwable {
        if (!isMet(spec.condition(), spec, body.invocation())) {
            log.debug("{} is not run here: its condition is false", spec.describe());
            return spec.skippedValue();
        }
        String name = spec.name().evaluate(() -> context(spec, body.invocation()));
        return switch (settings.get().mode(name)) {
            case EVERY_REPLICA -> body.run();
            case PAUSED ->
                denied(
                        spec,
                        Denial.of(name, DenialReason.PAUSED),
                        firing != null,
                        "paused on this replica by its configuration: pglock.locks has 'mode: paused' for it");
            case LOCKED -> runLocked(spec, name, firing, body);
        };
    }

    private @Nullable Object runLocked(LockSpec spec, String name, @Nullable Firing firing, LockedBody body)
            throws Throwable {
        LockHandle outer = LockContext.find(name);
        if (outer != null && registry.get().owns(outer)) {
            return runUnderOuter(spec, outer, body);
        }
        LockRequest request = spec.terms().request(name).family(spec.name().text());
        if (spec.ifHeld() == IfHeld.WAIT) {
            return runWhenGranted(spec, request, firing, body);
        }
        LockAttempt attempt;
        try {
            Tick tick = firing == null || !settings.get().oncePerTick() ? null : firing.tick(spec, name);
            attempt = registry.get().attempt(request, tick);
        } catch (LockStorageException e) {
            if (firing == null) {
                throw e;
            }
            refused.skipped(spec.method(), spec.describe(), e);
            return spec.skippedValue();
        }
        if (attempt instanceof LockAttempt.Granted granted) {
            if (firing != null) {
                firing.granted(name);
                refused.granted(spec.method());
            }
            return body.runUnder(granted.lock());
        }
        Denial denial = ((LockAttempt.Denied) attempt).denial();
        return denied(spec, denial, firing != null, denial.describe());
    }

    /** The same lock again on the same thread: the outer call's tenure covers this one, but it can remember no version. */
    private static @Nullable Object runUnderOuter(LockSpec spec, LockHandle outer, LockedBody body) throws Throwable {
        if (spec.terms().version() != null) {
            throw new IllegalStateException(spec.describe() + " has a version and is called under its own lock '"
                    + outer.name()
                    + "', which this thread holds already: it would wait for itself. Call it outside of that "
                    + "lock, or give it a name of its own");
        }
        outer.ensureHeld();
        return body.run();
    }

    private @Nullable Object runWhenGranted(
            LockSpec spec, LockRequest request, @Nullable Firing firing, LockedBody body) throws Throwable {
        LockHandle lock;
        try {
            lock = firing == null ? registry.get().acquire(request) : acquireForTick(request);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            if (firing != null) {
                refused.interrupted(spec.describe());
                return spec.skippedValue();
            }
            throw new LockNotAcquiredException(
                    request.name(), null, "Interrupted while waiting for lock '" + request.name() + "'");
        } catch (LockNotAcquiredException e) {
            if (e.reason() == DenialReason.DONE) {
                return spec.skippedValue();
            }
            if (firing == null) {
                throw e;
            }
            refused.notAcquired(spec.method(), spec.describe(), e);
            return spec.skippedValue();
        } catch (LockStorageException e) {
            if (firing == null) {
                throw e;
            }
            refused.skipped(spec.method(), spec.describe(), e);
            return spec.skippedValue();
        }
        if (firing != null) {
            refused.granted(spec.method());
        }
        return body.runUnder(lock);
    }

    /** Waits as long as the lock is held, but not for an operator: the scheduler's thread has other tasks. */
    private LockHandle acquireForTick(LockRequest request) throws InterruptedException {
        LockAttempt attempt = registry.get().attempt(request, null);
        if (attempt instanceof LockAttempt.Granted granted) {
            return granted.lock();
        }
        Denial denial = ((LockAttempt.Denied) attempt).denial();
        if (denial.reason() == DenialReason.PAUSED || denial.reason() == DenialReason.DONE) {
            throw new LockNotAcquiredException(denial);
        }
        return registry.get().acquire(request);
    }

    /**
     * A tick and a {@code SKIP} are skipped; whoever else called is told, and so is who calls while this replica stops: no
     * other one does the work for him.
     */
    private static @Nullable Object denied(LockSpec spec, Denial denial, boolean tick, String why) {
        boolean skip = switch (spec.kind()) {
            case SCHEDULED -> tick;
            case RUN_ONCE ->
                denial.reason() == DenialReason.DONE
                        || (spec.ifHeld() == IfHeld.WAIT && tick)
                        || (spec.ifHeld() == IfHeld.SKIP && (tick || denial.reason() != DenialReason.STOPPING));
            case SINGLETON -> tick;
        };
        if (!skip) {
            throw new LockNotAcquiredException(
                    denial.name(), denial.reason(), "Lock '" + denial.name() + "' was not acquired: " + why);
        }
        log.debug("{} is skipped: lock '{}' is {}", spec.describe(), denial.name(), why);
        return spec.skippedValue();
    }

    private boolean isMet(@Nullable Expression condition, LockSpec spec, MethodInvocation invocation) {
        return condition == null || Boolean.TRUE.equals(condition.getValue(context(spec, invocation), Boolean.class));
    }

    /** NullAway disagrees with itself, on JDK 17 and 25, over the array of arguments that may be null. */
    @SuppressWarnings("NullAway")
    private EvaluationContext context(LockSpec spec, MethodInvocation invocation) {
        return specs.expressions().context(invocation.getThis(), spec.method(), invocation.getArguments());
    }
}
