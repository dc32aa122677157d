package dev.pglock.aop;

import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.annotation.Strategy;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.MethodClassKey;
import org.springframework.core.MethodIntrospector;
import org.springframework.expression.Expression;
import org.springframework.expression.ParseException;
import org.springframework.util.ClassUtils;

/**
 * Which methods are locked, and how. Pointcut, interceptor and verification ask here and nowhere else. What a method's
 * annotations say is read and checked once; what is wrong with them is an {@link InvalidLockException}.
 */
final class LockSpecs implements AopInfrastructureBean {

    private static final Duration LEAST_LEASE = Duration.ofMillis(500);

    private final Supplier<LockedMethodSettings> settings;
    private final Expressions expressions;
    private final AsyncMethods async;
    private final Map<MethodClassKey, Optional<LockSpec>> specs = new ConcurrentHashMap<>();
    private final Map<Class<?>, Map<Method, LockAnnotations>> annotated = new ConcurrentHashMap<>();

    LockSpecs(Supplier<LockedMethodSettings> settings, Expressions expressions, AsyncMethods async) {
        this.settings = settings;
        this.expressions = expressions;
        this.async = async;
    }

    Expressions expressions() {
        return expressions;
    }

    /**
     * How a method is locked.
     *
     * @return null if it is not
     * @throws InvalidLockException if it should be, but cannot be as it is written
     */
    @Nullable
    LockSpec find(Method method, Class<?> targetClass) {
        Class<?> type = ClassUtils.getUserClass(targetClass);
        MethodClassKey key = new MethodClassKey(method, type);
        Optional<LockSpec> known = specs.get(key);
        if (known == null) {
            // Outside the map's own methods: what is read here may ask for other beans.
            known = Optional.ofNullable(read(AopUtils.getMostSpecificMethod(method, type), type));
            specs.put(key, known);
        }
        return known.orElse(null);
    }

    /** The methods of a class with annotations that matter here, whether they are locked in the end or not. */
    Map<Method, LockAnnotations> annotatedMethods(Class<?> targetClass) {
        Class<?> type = ClassUtils.getUserClass(targetClass);
        Map<Method, LockAnnotations> known = annotated.get(type);
        if (known == null) {
            known = type.getName().startsWith("java.") ? Map.of() : search(type);
            annotated.put(type, known);
        }
        return known;
    }

    /** As Spring searches for what it schedules, so that nothing can be scheduled that is not found here. */
    private static Map<Method, LockAnnotations> search(Class<?> type) {
        Map<Method, LockAnnotations> found = new HashMap<>();
        MethodIntrospector.selectMethods(type, (Method method) -> LockAnnotations.find(method, type))
                .forEach((method, annotations) -> found.put(AopUtils.getMostSpecificMethod(method, type), annotations));
        return Map.copyOf(found);
    }

    private @Nullable LockSpec read(Method method, Class<?> type) {
        LockAnnotations found = LockAnnotations.find(method, type);
        if (found == null) {
            return null;
        }
        Reading reading = new Reading(method, type, found);
        reading.refuseWhatContradicts();
        if (found.runOnce() != null) {
            return reading.runOnce(found.runOnce());
        }
        if (found.singleton() != null) {
            return reading.singleton(found.singleton());
        }
        return isLockedForBeingScheduled(reading) ? reading.scheduled() : null;
    }

    private boolean isLockedForBeingScheduled(Reading reading) {
        LockedMethodSettings s = settings.get();
        return s.scheduled() == ScheduledMode.ALL
                && !reading.found.everyReplica()
                && !reading.found.everyReplicaType()
                && !s.everyReplica().contains(reading.defaultName())
                && (s.packages().isEmpty()
                        || s.packages().stream().anyMatch(p -> isIn(p, reading.type.getPackageName())));
    }

    private static boolean isIn(String parent, String packageName) {
        return packageName.equals(parent) || packageName.startsWith(parent + ".");
    }

    /** Reads the annotations of one method. */
    private final class Reading {

        private final Method method;
        private final Class<?> type;
        private final LockAnnotations found;

        Reading(Method method, Class<?> type, LockAnnotations found) {
            this.method = method;
            this.type = type;
            this.found = found;
        }

        void refuseWhatContradicts() {
            boolean everyReplica = found.everyReplica() || found.everyReplicaType();
            if (found.runOnce() != null && found.singleton() != null) {
                throw invalid(
                        "it has both @RunOnce and @Singleton",
                        "Keep one: @RunOnce skips a call while another replica runs it, @Singleton waits for its turn.");
            }
            if (found.runOnce() != null && found.everyReplica()) {
                throw invalid(
                        "it has both @RunOnce and @EveryReplica",
                        "Keep one: @RunOnce runs on one replica, @EveryReplica on each.");
            }
            if (found.singleton() != null && found.scheduled() && !everyReplica) {
                throw invalid(
                        "it is @Scheduled and @Singleton: every replica would wait for its turn and run each tick",
                        "Use @RunOnce, or @Scheduled alone, for one run per tick; add @EveryReplica if every replica "
                                + "is to run each tick, one after the other.");
            }
        }

        LockSpec runOnce(RunOnce a) {
            boolean once = !a.version().isEmpty();
            if (found.scheduled() && (once || a.ifHeld() != IfHeld.SKIP)) {
                throw invalid(
                        "it is @Scheduled, and its @RunOnce has " + (once ? "a version" : "ifHeld = " + a.ifHeld()),
                        "A tick is skipped when another replica runs it. Remove that attribute, or move the work to a "
                                + "method that is not scheduled.");
            }
            if (a.ifHeld() == IfHeld.WAIT && !once) {
                throw invalid(
                        "its @RunOnce waits (ifHeld = WAIT), but has no version by which the end could be seen",
                        "Add a version, or use @Singleton to wait for a turn.");
            }
            if (once && a.name().isEmpty()) {
                throw invalid(
                        "its @RunOnce has a version, but no name",
                        "Write the name out: a success is remembered under it, and renaming the method must not make "
                                + "it run again.");
            }
            if (!a.waitTimeout().isEmpty() && a.ifHeld() != IfHeld.WAIT) {
                throw invalid("its @RunOnce has a waitTimeout, but does not wait", "Remove it, or set ifHeld = WAIT.");
            }
            Duration wait = a.ifHeld() == IfHeld.WAIT ? LockRequest.UNLIMITED : null;
            LockSpec.Terms terms = new LockSpec.Terms(
                    strategy(a.strategy(), a.leaseDuration()),
                    lease(a.leaseDuration()),
                    a.waitTimeout().isEmpty()
                            ? wait
                            : duration("waitTimeout", a.waitTimeout(), DurationText::notNegative),
                    duration("minHold", a.minHold(), DurationText::positive),
                    duration("maxHold", a.maxHold(), DurationText::positive),
                    onLost(a.onLost()),
                    once
                            ? attribute(
                                    "version",
                                    a.version(),
                                    text -> LockRequest.of("x").version(text).version())
                            : null);
            boolean mayBeSkipped =
                    a.ifHeld() == IfHeld.SKIP || once || !a.condition().isEmpty();
            return spec(LockSpec.Kind.RUN_ONCE, a.name(), terms, a.ifHeld(), a.condition(), mayBeSkipped);
        }

        LockSpec singleton(Singleton a) {
            LockSpec.Terms terms = new LockSpec.Terms(
                    strategy(a.strategy(), a.leaseDuration()),
                    lease(a.leaseDuration()),
                    duration("waitTimeout", a.waitTimeout(), DurationText::notNegative),
                    null,
                    duration("maxHold", a.maxHold(), DurationText::positive),
                    onLost(a.onLost()),
                    null);
            return spec(
                    LockSpec.Kind.SINGLETON,
                    a.name(),
                    terms,
                    IfHeld.WAIT,
                    a.condition(),
                    !a.condition().isEmpty());
        }

        LockSpec scheduled() {
            LockSpec.Terms terms = new LockSpec.Terms(null, null, null, null, null, null, null);
            return spec(LockSpec.Kind.SCHEDULED, "", terms, IfHeld.SKIP, "", true);
        }

        private LockSpec spec(
                LockSpec.Kind kind,
                String writtenName,
                LockSpec.Terms terms,
                IfHeld ifHeld,
                String condition,
                boolean mayBeSkipped) {
            boolean isAsync = async.include(method, type);
            ResultKind result = ResultKind.of(method, type, isAsync);
            refuseWhatHasNoEnd(result);
            if (result == ResultKind.PRIMITIVE && mayBeSkipped && !found.scheduled()) {
                throw invalid(
                        "it returns the primitive '" + method.getReturnType()
                                + "', which cannot say that the call was skipped",
                        "Return the boxed type (null when skipped), an Optional (empty when skipped) or void.");
            }
            return new LockSpec(
                    kind,
                    type,
                    method,
                    name(writtenName),
                    !writtenName.isEmpty(),
                    terms,
                    ifHeld,
                    condition.isEmpty() ? null : attribute("condition", condition, this::condition),
                    result,
                    found.scheduled() ? TaskMethod.namesOf(type, method) : Set.of(),
                    isAsync);
        }

        /** The lock must not be given back before the work has ended, so its end must be known. */
        private void refuseWhatHasNoEnd(ResultKind result) {
            String type = method.getReturnType().getName();
            switch (result) {
                case UNOBSERVABLE ->
                    throw invalid(
                            "it returns a " + type
                                    + ", whose end nobody is told of: its lock could not be kept until then",
                            "Return a CompletableFuture, or wait for the result in the method.");
                case FOREIGN ->
                    throw invalid(
                            "it returns a " + type
                                    + ", whose work begins after the call: its lock could not be kept for it",
                            "Return a Mono or a Flux of Reactor, a CompletableFuture, or wait for the result in the "
                                    + "method." + everyReplica());
                case SUSPEND ->
                    throw invalid(
                            "it is a suspend function, which may return before its work has ended: its lock could not be "
                                    + "kept for it",
                            "Let an ordinary function call it with runBlocking, or return a Mono (mono { … } of "
                                    + "kotlinx-coroutines-reactor) or a CompletableFuture (future { … })."
                                    + everyReplica());
                default -> {
                    // its end is known
                }
            }
        }

        private String everyReplica() {
            return found.scheduled() ? " If every replica is to run it, annotate it with @EveryReplica." : "";
        }

        private Expression condition(String text) {
            return expressions.expression(text);
        }

        private LockName name(String written) {
            if (written.isEmpty() && (type.getSimpleName().isEmpty() || MethodShapes.isOfInterfaces(type))) {
                throw invalid(
                        "its class has no name of its own that all replicas agree on",
                        "Write the lock's name out: @RunOnce(\"…\").");
            }
            return attribute(
                    "name", written.isEmpty() ? defaultName() : written, text -> LockName.parse(text, expressions));
        }

        /** Simple class name, dot, method; with the parameter types where several locked methods have that name. */
        String defaultName() {
            boolean overloaded = annotatedMethods(type).keySet().stream()
                            .filter(m -> m.getName().equals(method.getName()))
                            .count()
                    > 1;
            String name = type.getSimpleName() + "." + method.getName();
            return overloaded
                    ? name
                            + Stream.of(method.getParameterTypes())
                                    .map(Class::getSimpleName)
                                    .collect(Collectors.joining(",", "(", ")"))
                    : name;
        }

        private @Nullable LockStrategy strategy(Strategy strategy, String leaseDuration) {
            LockStrategy chosen = switch (strategy) {
                case DEFAULT -> null;
                case LEASE -> LockStrategy.LEASE;
                case ADVISORY -> LockStrategy.ADVISORY;
            };
            LockStrategy effective = chosen == null ? settings.get().strategy() : chosen;
            if (effective == LockStrategy.ADVISORY && !leaseDuration.isEmpty()) {
                throw invalid(
                        "it is an advisory lock and has a leaseDuration of its own, but all advisory locks of a replica "
                                + "live on one session and have its lease",
                        "Remove leaseDuration, which pglock.lease-duration sets for all of them, or add strategy = "
                                + "Strategy.LEASE.");
            }
            return chosen;
        }

        private @Nullable Duration lease(String text) {
            Duration lease = duration("leaseDuration", text, DurationText::positive);
            if (lease != null && lease.compareTo(LEAST_LEASE) < 0) {
                throw invalid(
                        "its leaseDuration '" + text + "' is shorter than " + LEAST_LEASE.toMillis() + " ms",
                        "Set a longer one; some seconds at least let heartbeats survive a short outage.");
            }
            return lease;
        }

        private @Nullable OnLost onLost(dev.pglock.annotation.OnLost onLost) {
            return switch (onLost) {
                case DEFAULT -> null;
                case INTERRUPT -> OnLost.INTERRUPT;
                case CONTINUE -> OnLost.CONTINUE;
            };
        }

        private @Nullable Duration duration(
                String attribute, String text, Function<String, @Nullable Duration> parser) {
            return text.isEmpty() ? null : attribute(attribute, text, parser);
        }

        /** Resolves the placeholders of an attribute and reads it; whatever is wrong names the attribute. */
        private <T extends @Nullable Object> T attribute(String attribute, String text, Function<String, T> reader) {
            try {
                return reader.apply(expressions.placeholders(text));
            } catch (IllegalArgumentException | ParseException e) {
                throw invalid(
                        "its " + attribute + " '" + text + "' cannot be used: " + e.getMessage(),
                        "Correct the attribute '" + attribute + "'.");
            }
        }

        private InvalidLockException invalid(String problem, String action) {
            return InvalidLockException.of(type, method, problem, action);
        }
    }
}
