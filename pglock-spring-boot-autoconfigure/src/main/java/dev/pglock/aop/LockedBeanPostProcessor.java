package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.SmartInstantiationAwareBeanPostProcessor;
import org.springframework.util.ClassUtils;

/**
 * Looks at each bean before and after it was proxied. It comes after every ordered post-processor, the auto-proxy creator
 * included, and before the one that schedules methods: what it sees is what the scheduler would call. A raw object here
 * (handed out early by a circular reference, say) would run its methods unlocked.
 */
final class LockedBeanPostProcessor implements SmartInstantiationAwareBeanPostProcessor, AopInfrastructureBean {

    private final LockSpecs specs;
    private final AutoConfiguredBeans autoConfigured;
    private final MethodShapes shapes;
    private final Supplier<LockVerifier> verifier;

    /** Beans whose proxy was handed out before they were initialized. */
    private final Set<String> early = ConcurrentHashMap.newKeySet();

    LockedBeanPostProcessor(
            LockSpecs specs, AutoConfiguredBeans autoConfigured, MethodShapes shapes, Supplier<LockVerifier> verifier) {
        this.specs = specs;
        this.autoConfigured = autoConfigured;
        this.shapes = shapes;
        this.verifier = verifier;
    }

    @Override
    public Object getEarlyBeanReference(Object bean, String beanName) {
        if (isAdvised(bean)) {
            early.add(beanName);
        }
        return bean;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        forEachLockedMethod(bean, beanName, (type, method) -> shapes.check(type, method));
        return bean;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        boolean proxiedEarly = early.remove(beanName);
        forEachLockedMethod(bean, beanName, (type, method) -> {
            // Again, for what a factory bean made: it is seen here only.
            shapes.check(type, method);
            if (proxiedEarly && !LockAnnotations.isScheduled(method)) {
                // Everybody gets that proxy, except who schedules: he takes what he sees now.
                return;
            }
            AsyncOrder.putOutside(bean, type, method);
            if (!isAdvised(bean)) {
                throw MethodShapes.cannot(
                        type,
                        method,
                        "its bean '" + beanName
                                + "' was not proxied (handed out early by a circular reference, or made in a way that goes "
                                + "past the proxies)",
                        "Break the circular reference, with @Lazy on one side for instance, or declare the bean as an "
                                + "ordinary one.");
            }
            MethodShapes.checkJdkProxy(bean, type, method);
        });
        return bean;
    }

    private void forEachLockedMethod(Object bean, String beanName, MethodCheck check) {
        Class<?> type = ClassUtils.getUserClass(AopProxyUtils.ultimateTargetClass(bean));
        Map<Method, LockAnnotations> annotated = specs.annotatedMethods(type);
        if (annotated.isEmpty()
                || (annotated.values().stream().allMatch(LockAnnotations::onlyScheduled)
                        && autoConfigured.contains(beanName))) {
            return;
        }
        for (Method method : annotated.keySet()) {
            try {
                if (specs.find(method, type) != null) {
                    check.check(type, method);
                }
            } catch (InvalidLockException e) {
                verifier.get().refuse(e);
            }
        }
    }

    /**
     * A proxy whose target is looked up at each call, a scoped one say, leads to a bean that is looked at by itself; one
     * that somebody has put around ours leads to ours.
     */
    static boolean isAdvised(Object bean) {
        Object proxy = bean;
        while (proxy instanceof Advised advised) {
            if (!advised.getTargetSource().isStatic()
                    || Arrays.stream(advised.getAdvisors()).anyMatch(LockAdvisor.class::isInstance)) {
                return true;
            }
            proxy = AopProxyUtils.getSingletonTarget(advised);
        }
        return proxy != null && AopUtils.isAopProxy(proxy);
    }

    @FunctionalInterface
    private interface MethodCheck {

        void check(Class<?> type, Method method);
    }
}
