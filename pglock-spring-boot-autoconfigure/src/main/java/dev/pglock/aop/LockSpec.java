package dev.pglock.aop;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.annotation.IfHeld;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.Expression;
import org.springframework.util.ClassUtils;

/**
 * How one method is locked: its annotations, read and checked once. Immutable.
 *
 * @param kind what a call does with its lock
 * @param type the bean's own class
 * @param method the most specific method
 * @param name under which name
 * @param writtenName whether the name was written out
 * @param terms how the lock is asked for
 * @param ifHeld what a call does that does not get it; only for {@link Kind#RUN_ONCE}
 * @param condition null: always
 * @param result what a call returns, and a skipped one
 * @param ticks what a scheduled task may say that is made from this method, see {@link TaskMethod}; empty if it is not
 *     scheduled
 * @param async whether calls are handed to another thread before they get here
 */
record LockSpec(
        Kind kind,
        Class<?> type,
        Method method,
        LockName name,
        boolean writtenName,
        Terms terms,
        IfHeld ifHeld,
        @Nullable Expression condition,
        ResultKind result,
        Set<String> ticks,
        boolean async) {

    /** What a call does with its lock. */
    enum Kind {
        /** Locked only because it is scheduled: a tick is skipped, a direct call runs or fails. */
        SCHEDULED,
        /** Runs if the lock is free. */
        RUN_ONCE,
        /** Waits for its turn. */
        SINGLETON
    }

    /** The attributes that go into the request; null is the registry's default. */
    record Terms(
            @Nullable LockStrategy strategy,
            @Nullable Duration leaseDuration,
            @Nullable Duration waitTimeout,
            @Nullable Duration minHold,
            @Nullable Duration maxHold,
            @Nullable OnLost onLost,
            @Nullable String version) {

        LockRequest request(String name) {
            LockRequest request = LockRequest.of(name);
            request = strategy == null ? request : request.strategy(strategy);
            request = leaseDuration == null ? request : request.leaseDuration(leaseDuration);
            request = waitTimeout == null ? request : request.waitTimeout(waitTimeout);
            request = minHold == null ? request : request.minHold(minHold);
            request = maxHold == null ? request : request.maxHold(maxHold);
            request = onLost == null ? request : request.onLost(onLost);
            return version == null ? request : request.version(version);
        }
    }

    /** Whether the call of a scheduled task is a tick: as a skipped one returns nothing, so must the method be able to. */
    boolean hasTicks() {
        return !ticks.isEmpty() || (kind == Kind.RUN_ONCE && ifHeld == IfHeld.SKIP && terms.version() == null);
    }

    /** As the registry is asked, but that a name with parts that each call evaluates stands there as it is written. */
    LockRequest request() {
        return terms.request(name.text());
    }

    @Nullable
    Object skippedValue() {
        return result.skipped(method.getReturnType());
    }

    String describe() {
        return simpleName(type) + "." + method.getName();
    }

    /** The same on every replica, for classes without a name of their own too. */
    private static String simpleName(Class<?> type) {
        if (MethodShapes.isOfInterfaces(type) && type.getInterfaces().length > 0) {
            return type.getInterfaces()[0].getSimpleName();
        }
        return type.getSimpleName().isEmpty() ? ClassUtils.getShortName(type) : type.getSimpleName();
    }
}
