package dev.pglock.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.Advisor;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.scheduling.annotation.AsyncAnnotationAdvisor;

/**
 * Keeps {@code @Async} outside of the lock. It has a post-processor of its own, whose order is the application's
 * ({@code @EnableAsync(order = …)}): where that one comes before the auto-proxy creator, a lock would be taken by the
 * caller, and given back as soon as the call is handed over.
 */
final class AsyncOrder {

    private AsyncOrder() {}

    /** Brings the advice of {@code @Async} before that of the lock, in whichever proxy of the bean it is. */
    static void putOutside(Object bean, Class<?> type, Method method) {
        Advised locked = null;
        for (Advised proxy = advised(bean); proxy != null; proxy = advised(AopProxyUtils.getSingletonTarget(proxy))) {
            int lock = locked == null ? indexOf(LockAdvisor.class, proxy) : -1;
            if (lock >= 0) {
                locked = proxy;
            }
            int async = indexOf(AsyncAnnotationAdvisor.class, proxy);
            if (locked != null && async > lock) {
                move(async, proxy, locked, type, method);
            }
        }
    }

    private static void move(int async, Advised from, Advised to, Class<?> type, Method method) {
        Object target = AopProxyUtils.getSingletonTarget(to);
        // An interface's proxy does not show the annotations of the class behind it: @Async would find nothing there.
        boolean blind = from != to && (target == null || Proxy.isProxyClass(target.getClass()));
        if (blind || from.isFrozen() || to.isFrozen()) {
            throw MethodShapes.cannot(
                    type,
                    method,
                    "its lock is outside of @Async and would be given back as soon as the call is handed over",
                    "Remove the order from @EnableAsync.");
        }
        Advisor advisor = from.getAdvisors()[async];
        from.removeAdvisor(advisor);
        to.addAdvisor(indexOf(LockAdvisor.class, to), advisor);
    }

    private static @Nullable Advised advised(@Nullable Object bean) {
        return bean instanceof Advised advised && advised.getTargetSource().isStatic() ? advised : null;
    }

    private static int indexOf(Class<? extends Advisor> kind, Advised proxy) {
        List<Advisor> advisors = Arrays.asList(proxy.getAdvisors());
        return advisors.indexOf(
                advisors.stream().filter(kind::isInstance).findFirst().orElse(null));
    }
}
