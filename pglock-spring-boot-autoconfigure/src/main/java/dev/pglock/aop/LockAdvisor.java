package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import org.aopalliance.aop.Advice;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.MethodMatcher;
import org.springframework.aop.Pointcut;
import org.springframework.aop.PointcutAdvisor;
import org.springframework.aop.framework.autoproxy.ProxyCreationContext;
import org.springframework.aop.support.AopUtils;
import org.springframework.aop.support.StaticMethodMatcher;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;

/**
 * Brings the interceptor to the beans with locked methods: inside {@code @Async}, outside {@code @Transactional}. It
 * matches by the same finder that the interceptor uses.
 */
final class LockAdvisor implements PointcutAdvisor, Ordered {

    private final LockInterceptor interceptor;
    private final IntSupplier order;
    private final Pointcut pointcut;

    LockAdvisor(
            LockInterceptor interceptor,
            LockSpecs specs,
            AutoConfiguredBeans autoConfigured,
            MethodShapes shapes,
            Supplier<LockedMethodSettings> settings,
            IntSupplier order) {
        this.interceptor = interceptor;
        this.order = order;
        this.pointcut = new LockPointcut(specs, autoConfigured, shapes, settings);
    }

    @Override
    public Pointcut getPointcut() {
        return pointcut;
    }

    @Override
    public Advice getAdvice() {
        return interceptor;
    }

    @Override
    public int getOrder() {
        return order.getAsInt();
    }

    private record LockPointcut(
            LockSpecs specs,
            AutoConfiguredBeans autoConfigured,
            MethodShapes shapes,
            Supplier<LockedMethodSettings> settings)
            implements Pointcut {

        @Override
        public ClassFilter getClassFilter() {
            return type -> !specs.annotatedMethods(type).isEmpty()
                    && !isNoneOfOurs(type, ProxyCreationContext.getCurrentProxiedBeanName());
        }

        /** A bean of an auto-configuration is somebody's infrastructure: only our own annotations count there. */
        private boolean isNoneOfOurs(Class<?> type, @org.jspecify.annotations.Nullable String beanName) {
            return beanName != null
                    && specs.annotatedMethods(type).values().stream().allMatch(LockAnnotations::onlyScheduled)
                    && autoConfigured.contains(beanName);
        }

        @Override
        public MethodMatcher getMethodMatcher() {
            return new StaticMethodMatcher() {
                @Override
                public boolean matches(Method method, Class<?> targetClass) {
                    return settings.get().verification() == Verification.FAIL
                            ? specs.find(method, targetClass) != null
                            : isFitToBeLocked(method, targetClass);
                }
            };
        }

        /** What is refused, and yet is to run, runs as if it asked for no lock: on its bean, and not on a proxy for our sake. */
        private boolean isFitToBeLocked(Method method, Class<?> targetClass) {
            try {
                if (specs.find(method, targetClass) == null) {
                    return false;
                }
                Class<?> type = ClassUtils.getUserClass(targetClass);
                shapes.check(type, AopUtils.getMostSpecificMethod(method, type));
                return true;
            } catch (InvalidLockException e) {
                return false;
            }
        }
    }
}
