package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.GenericTypeResolver;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.util.ClassUtils;

/** What a method returns: by it are known what a skipped call returns, and when the work has ended. */
enum ResultKind {
    /** {@code void}, or an object: null when skipped. */
    VALUE,
    /** {@code Object}, which may turn out to be any of the others. */
    ANY,
    /** One of the optionals: empty when skipped. */
    OPTIONAL,
    /** A primitive: there is no value that would say "skipped". */
    PRIMITIVE,
    /** A {@code CompletionStage} of the JDK: the work ends when it completes. */
    STAGE,
    /** A {@code Mono} of Reactor: the work is that of each subscription. */
    MONO,
    /** A {@code Flux} of Reactor: the work is that of each subscription. */
    FLUX,
    /** A {@code Future} whose end cannot be seen. */
    UNOBSERVABLE,
    /** A reactive type that is none of Reactor's two. */
    FOREIGN,
    /** A suspend function of Kotlin. */
    SUSPEND;

    private static final String SUSPEND_PARAMETER = "kotlin.coroutines.Continuation";

    /**
     * The kind of a method's result.
     *
     * @param method the method
     * @param type its bean's class, by which type parameters are known
     * @param async whether somebody waits for a {@code Future} on the thread that runs the method, as {@code @Async} does
     * @return the kind
     */
    static ResultKind of(Method method, Class<?> type, boolean async) {
        Class<?>[] parameters = method.getParameterTypes();
        if (parameters.length > 0 && parameters[parameters.length - 1].getName().equals(SUSPEND_PARAMETER)) {
            return SUSPEND;
        }
        Class<?> result = GenericTypeResolver.resolveReturnType(method, type);
        if (result.isPrimitive()) {
            return result == void.class ? VALUE : PRIMITIVE;
        }
        if (result == Object.class) {
            return ANY;
        }
        if (result == CompletableFuture.class
                || result == CompletionStage.class
                || (async && Future.class.isAssignableFrom(result))) {
            return STAGE;
        }
        if (Future.class.isAssignableFrom(result) || CompletionStage.class.isAssignableFrom(result)) {
            return UNOBSERVABLE;
        }
        return switch (result.getName()) {
            case "reactor.core.publisher.Mono" -> MONO;
            case "reactor.core.publisher.Flux" -> FLUX;
            case "java.util.Optional", "java.util.OptionalInt", "java.util.OptionalLong", "java.util.OptionalDouble" ->
                OPTIONAL;
            default -> isReactive(result) ? FOREIGN : VALUE;
        };
    }

    private static boolean isReactive(Class<?> result) {
        return Flow.Publisher.class.isAssignableFrom(result)
                || ReactiveAdapterRegistry.getSharedInstance().getAdapter(result) != null
                || Stream.concat(Stream.of(result), ClassUtils.getAllInterfacesForClassAsSet(result).stream())
                        .map(Class::getName)
                        .anyMatch(ResultKind::isNameOfReactive);
    }

    private static boolean isNameOfReactive(String name) {
        return name.equals("org.reactivestreams.Publisher")
                || name.startsWith("io.reactivex.")
                || name.startsWith("io.smallrye.mutiny.")
                || name.startsWith("kotlinx.coroutines.");
    }

    /** Whether the work begins with a subscription, and not with the call. */
    boolean isPublisher() {
        return this == MONO || this == FLUX;
    }

    /** What a skipped call returns that has that result type. */
    @Nullable
    Object skipped(Class<?> type) {
        return switch (this) {
            // Only scheduled methods may be skipped with a primitive result, and nobody reads theirs.
            case PRIMITIVE -> zero(type);
            case OPTIONAL -> emptyOptional(type);
            case STAGE -> CompletableFuture.completedFuture(null);
            case MONO, FLUX -> ReactiveCalls.nothing(this);
            default -> null;
        };
    }

    private static Object emptyOptional(Class<?> type) {
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
