package dev.pglock.aop;

import dev.pglock.LockRequest;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The check after start-up: every method with our annotations, and every scheduled one that is to be locked, must be one
 * that can be, under a name that is its own. It looks at the types of all beans, those that are created later included;
 * whether a created bean is really advised is checked when it is created, by {@link LockedBeanPostProcessor}.
 */
public final class LockVerifier {

    private static final Logger log = LoggerFactory.getLogger(LockVerifier.class);

    /** Events that every replica publishes at its start. */
    private static final Set<String> START_EVENTS =
            Set.of("ContextRefreshedEvent", "ContextStartedEvent", "ApplicationStartedEvent", "ApplicationReadyEvent");

    /**
     * Is there where a test has put beans in the place of others ({@code @MockitoBean}, say). Those are the test's own: no
     * post-processor sees them.
     */
    private static final String TEST_DOUBLES =
            "org.springframework.test.context.bean.override.internalBeanOverrideRegistry";

    private final ConfigurableListableBeanFactory beans;
    private final LockSpecs specs;
    private final AutoConfiguredBeans autoConfigured;
    private final MethodShapes shapes;
    private final Ticks ticks;
    private final Supplier<LockedMethodSettings> settings;

    /** What was refused with a warning. */
    private final Set<String> told = ConcurrentHashMap.newKeySet();

    LockVerifier(
            ConfigurableListableBeanFactory beans,
            LockSpecs specs,
            AutoConfiguredBeans autoConfigured,
            MethodShapes shapes,
            Ticks ticks,
            Supplier<LockedMethodSettings> settings) {
        this.beans = beans;
        this.specs = specs;
        this.autoConfigured = autoConfigured;
        this.shapes = shapes;
        this.ticks = ticks;
        this.settings = settings;
    }

    /**
     * Checks all beans of the context. Creates no bean and asks no database.
     *
     * @return what is locked and what is not
     * @throws InvalidLockException for the first method that cannot be locked as it is written, unless
     *     {@code pglock.verification} is {@code warn} or {@code off}
     */
    public LockedMethods verify() {
        refuseBeansOfParents();
        LockedMethods findings = new LockedMethods();
        for (String beanName : beans.getBeanDefinitionNames()) {
            Class<?> type = targetType(beanName);
            if (type != null) {
                refuseForeignSingletons(type);
                verify(beanName, type, findings);
            }
        }
        return findings;
    }

    /**
     * Refuses methods whose annotation and configuration do not go together: they would fail at each call.
     *
     * @param methods what {@link #verify} has found
     * @param check throws {@link IllegalArgumentException} for what the registry would refuse
     * @throws InvalidLockException for the first such method, unless {@code pglock.verification} is {@code warn} or {@code off}
     */
    public void refuseWhatCannotBeAsked(LockedMethods methods, Consumer<LockRequest> check) {
        for (LockSpec spec : methods.specs()) {
            try {
                check.accept(spec.request());
            } catch (IllegalArgumentException e) {
                refuse(InvalidLockException.of(
                        spec.type(),
                        spec.method(),
                        "each call would be refused: " + e.getMessage(),
                        "Correct the annotation, or the entry for '" + spec.name() + "' in 'pglock.locks'."));
            }
        }
    }

    /**
     * Refuses methods with a version that nothing would remember: they would fail at their first call.
     *
     * @param methods what {@link #verify} has found
     * @param remembers whether a success of such a request is remembered
     * @throws InvalidLockException for the first such method, unless {@code pglock.verification} is {@code warn} or {@code off}
     */
    public void refuseWhatIsForgotten(LockedMethods methods, Predicate<LockRequest> remembers) {
        for (LockSpec spec : methods.specs()) {
            if (spec.terms().version() != null && !remembers.test(spec.request())) {
                refuse(InvalidLockException.of(
                        spec.type(),
                        spec.method(),
                        "its @RunOnce has a version, but its lock is an advisory one and there is no lease table in which"
                                + " the success could be remembered",
                        "Create the table with dev/pglock/lease/schema.sql, from the jar of pglock-core, or let this lock use the"
                                + " lease: strategy = Strategy.LEASE on the annotation."));
            }
        }
    }

    /**
     * Refuses what is to be locked in a context below this one that has no interception of its own.
     *
     * @param child its beans
     * @throws InvalidLockException for the first such method, unless {@code pglock.verification} is {@code warn} or {@code off}
     */
    void refuseBeansOfChild(ConfigurableListableBeanFactory child) {
        refuseBeansOf(child, "child", "in the parent");
    }

    /** They have long been created, and what is scheduled there runs: all that can be done is to tell. */
    private void refuseBeansOfParents() {
        for (BeanFactory parent = beans.getParentBeanFactory();
                parent instanceof ConfigurableListableBeanFactory factory;
                parent = factory.getParentBeanFactory()) {
            refuseBeansOf(factory, "parent", "in this one");
        }
    }

    private void refuseBeansOf(ConfigurableListableBeanFactory others, String context, String elsewhere) {
        if (others.getBeanNamesForType(LockVerifier.class, false, false).length > 0) {
            return;
        }
        LockVerifier there =
                new LockVerifier(others, specs, autoConfigured.in(others), new MethodShapes(others), ticks, settings);
        for (String beanName : others.getBeanDefinitionNames()) {
            Class<?> type = there.targetType(beanName);
            if (type != null) {
                there.refuseAll(beanName, type, context, elsewhere);
            }
        }
    }

    private void refuseAll(String beanName, Class<?> type, String context, String elsewhere) {
        Map<Method, LockAnnotations> annotated = specs.annotatedMethods(type);
        if (isNoneOfOurs(beanName, annotated)) {
            return;
        }
        for (Method method : annotated.keySet()) {
            try {
                if (specs.find(method, type) != null) {
                    refuse(MethodShapes.cannot(
                            type,
                            method,
                            "its bean '" + beanName + "' is in a " + context
                                    + " context that has no auto-configuration of pglock",
                            "Add @EnableAutoConfiguration to the configuration of the " + context + " context, or "
                                    + "@ImportAutoConfiguration with PgLockAutoConfiguration and "
                                    + "PgLockInterceptionAutoConfiguration, or declare the bean " + elsewhere + "."));
                }
            } catch (InvalidLockException e) {
                refuse(e);
            }
        }
    }

    private boolean isNoneOfOurs(String beanName, Map<Method, LockAnnotations> annotated) {
        return annotated.values().stream().allMatch(LockAnnotations::onlyScheduled)
                && autoConfigured.contains(beanName);
    }

    /**
     * The class of a bean, as somebody wrote it.
     *
     * @return null too for a bean that nobody has created and whose methods name types that are not there: it cannot be created
     *     either, so that nothing of it runs
     */
    private @Nullable Class<?> targetType(String beanName) {
        if (beanName.startsWith("scopedTarget.")) {
            return null;
        }
        try {
            Class<?> type = userClass(beanName);
            if (type != null) {
                ReflectionUtils.doWithMethods(type, method -> {});
            }
            return type;
        } catch (IllegalStateException | LinkageError e) {
            if (beans.containsSingleton(beanName)) {
                throw e;
            }
            log.debug("Bean '{}' is not looked at: it cannot be created", beanName, e);
            return null;
        }
    }

    private @Nullable Class<?> userClass(String beanName) {
        Class<?> type = AutoProxyUtils.determineTargetClass(beans, beanName);
        if (type != null && Proxy.isProxyClass(type)) {
            // What the auto-proxy creator took for the target was somebody else's proxy.
            Object bean = beans.containsSingleton(beanName) ? beans.getSingleton(beanName) : null;
            type = bean == null ? null : AopProxyUtils.ultimateTargetClass(bean);
        }
        return type == null ? null : ClassUtils.getUserClass(type);
    }

    private void verify(String beanName, Class<?> type, LockedMethods findings) {
        Map<Method, LockAnnotations> annotated = specs.annotatedMethods(type);
        boolean none = isNoneOfOurs(beanName, annotated);
        for (Map.Entry<Method, LockAnnotations> entry : annotated.entrySet()) {
            Method method = entry.getKey();
            try {
                if (entry.getValue().scheduled()) {
                    findings.scheduled(type, method, entry.getValue().onlyScheduled());
                }
                LockSpec spec = none ? null : specs.find(method, type);
                if (spec == null) {
                    findings.unlocked(type, method.getName(), none ? "auto-configured" : why(entry.getValue()));
                    continue;
                }
                shapes.check(type, method);
                refuseIfCreatedTooEarly(beanName, type, method);
                findings.locked(spec, settings.get());
                warnOfTwins(spec, beanName, findings.bean(spec, beanName));
                ticks.expect(spec);
                if (spec.async()) {
                    ticks.expectOnOtherThreads(spec);
                }
                warnOfSharedDelay(spec, findings);
                warnOfStartListener(spec);
            } catch (InvalidLockException e) {
                refuse(e);
            }
        }
    }

    /** Post-processors see no bean that was created before them; what they would have refused is found here. */
    private void refuseIfCreatedTooEarly(String beanName, Class<?> type, Method method) {
        Object bean = beans.containsSingleton(beanName) ? beans.getSingleton(beanName) : null;
        if (bean != null
                && !beans.containsSingleton(TEST_DOUBLES)
                && ClassUtils.getUserClass(AopProxyUtils.ultimateTargetClass(bean)) == type
                && !LockedBeanPostProcessor.isAdvised(bean)) {
            throw MethodShapes.cannot(
                    type,
                    method,
                    "its bean '" + beanName + "' was not proxied: it was created before proxies are made, because a "
                            + "bean post-processor or a bean factory post-processor needs it",
                    "Let that one ask for it later, with an ObjectProvider or @Lazy for instance.");
        }
    }

    private static String why(LockAnnotations annotations) {
        return annotations.everyReplica() || annotations.everyReplicaType() ? "@EveryReplica" : "configuration";
    }

    /** Throws, warns or stays silent, as {@code pglock.verification} says. */
    void refuse(InvalidLockException e) {
        switch (settings.get().verification()) {
            case FAIL -> throw e;
            case WARN -> {
                // Several look at each bean.
                if (told.add(String.valueOf(e.getMessage()))) {
                    log.warn("{}: it runs WITHOUT its lock. {}", e.getMessage(), e.action());
                }
            }
            case OFF -> log.debug("{}: it runs without its lock (pglock.verification=off)", e.getMessage());
        }
    }

    private void refuseForeignSingletons(Class<?> type) {
        ReflectionUtils.doWithMethods(
                type,
                method -> Arrays.stream(method.getAnnotations())
                        .map(Annotation::annotationType)
                        .filter(LockVerifier::isForeignSingleton)
                        .findFirst()
                        .filter(a -> !AnnotatedElementUtils.hasAnnotation(method, Bean.class))
                        .ifPresent(a -> refuse(InvalidLockException.of(
                                type,
                                method,
                                "it is annotated with @" + a.getName() + ", which locks nothing",
                                "Import dev.pglock.annotation.Singleton instead."))),
                method -> !method.isSynthetic() && method.getDeclaringClass() != Object.class);
    }

    private static boolean isForeignSingleton(Class<?> annotation) {
        return annotation.getSimpleName().equals("Singleton") && annotation != Singleton.class;
    }

    /** Beans of one class whose method has no name of its own exclude each other, which is seldom meant. */
    private static void warnOfTwins(LockSpec spec, String beanName, String first) {
        if (!spec.writtenName() && !first.equals(beanName)) {
            log.warn(
                    "{} of the beans '{}' and '{}' has one lock: only one of the two runs at a time. Write the lock's name"
                            + " out if that is meant; otherwise give each its own, by a SpEL part for instance",
                    spec.describe(),
                    first,
                    beanName);
        }
    }

    /** A delay is counted from the end of the lock's last run, whichever method that was. */
    private static void warnOfSharedDelay(LockSpec spec, LockedMethods findings) {
        LockSpec other = findings.sharing(spec);
        if (other != null && (hasDelay(spec) || hasDelay(other))) {
            log.warn(
                    "{} and {} have one lock, '{}', and a fixedDelay: it counts from the end of the lock's last run, whichever of"
                            + " them that was, so that the one with the longer delay may never run. Give each a lock of its own,"
                            + " or a cron or a fixedRate instead",
                    other.describe(),
                    spec.describe(),
                    spec.name());
        }
    }

    private static boolean hasDelay(LockSpec spec) {
        return LockAnnotations.schedules(spec.method()).stream()
                .anyMatch(s -> s.fixedDelay() >= 0 || !s.fixedDelayString().isEmpty());
    }

    private static void warnOfStartListener(LockSpec spec) {
        EventListener listener = AnnotatedElementUtils.findMergedAnnotation(spec.method(), EventListener.class);
        if (listener == null
                || spec.terms().version() != null
                || !AnnotatedElementUtils.hasAnnotation(spec.method(), RunOnce.class)) {
            return;
        }
        List<Class<?>> events = new ArrayList<>(List.of(listener.classes()));
        events.addAll(List.of(spec.method().getParameterTypes()));
        events.stream()
                .map(Class::getSimpleName)
                .filter(START_EVENTS::contains)
                .findFirst()
                .ifPresent(event -> log.warn(
                        "{} listens to {} with @RunOnce but without a version: replicas that start one after the other all run "
                                + "it. Add a version to have a success remembered",
                        spec.describe(),
                        event));
    }
}
