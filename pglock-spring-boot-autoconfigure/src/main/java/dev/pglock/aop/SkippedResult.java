package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/** What a call returns that was skipped, by the method's result type. */
enum SkippedResult {
    /** {@code void}, or an object: null. */
    NULL,
    /** One of the optionals: empty. */
    EMPTY,
    /** A primitive: there is no value that would say "skipped". */
    NONE,
    /** A result that comes later: the lock would be given back before the work has ended. */
    DEFERRED;

    private static final Set<String> DEFERRED_BY_NAME =
            Set.of("org.reactivestreams.Publisher", "kotlinx.coroutines.flow.Flow");
    private static final String SUSPEND_PARAMETER = "kotlin.coroutines.Continuation";

    static SkippedResult of(Method method) {
        Class<?> type = method.getReturnType();
        if (isDeferred(method, type)) {
            return DEFERRED;
        }
        if (type == void.class) {
            return NULL;
        }
        if (type.isPrimitive()) {
            return NONE;
        }
        return type == Optional.class
                        || type == OptionalInt.class
                        || type == OptionalLong.class
                        || type == OptionalDouble.class
                ? EMPTY
                : NULL;
    }

    private static boolean isDeferred(Method method, Class<?> type) {
        if (CompletionStage.class.isAssignableFrom(type)
                || Future.class.isAssignableFrom(type)
                || Flow.Publisher.class.isAssignableFrom(type)) {
            return true;
        }
        Class<?>[] parameters = method.getParameterTypes();
        if (parameters.length > 0 && parameters[parameters.length - 1].getName().equals(SUSPEND_PARAMETER)) {
            return true;
        }
        return ClassUtils.getAllInterfacesForClassAsSet(type).stream()
                .anyMatch(i -> DEFERRED_BY_NAME.contains(i.getName()));
    }

    /** The value for a method with that result type. */
    @Nullable
    Object value(Class<?> type) {
        if (this != EMPTY) {
            // Only scheduled methods have primitive results here, and nobody reads those.
            return type.isPrimitive() && type != void.class ? zero(type) : null;
        }
        if (type == OptionalInt.class) {
            return OptionalInt.empty();
        }
        if (type == OptionalLong.class) {
            return OptionalLong.empty();
        }
        return type == OptionalDouble.class ? OptionalDouble.empty() : Optional.empty();
    }

    private static Object zero(Class<?> primitive) {
        return java.lang.reflect.Array.get(java.lang.reflect.Array.newInstance(primitive, 1), 0);
    }
}
