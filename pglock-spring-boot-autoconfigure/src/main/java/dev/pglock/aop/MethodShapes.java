package dev.pglock.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.aop.framework.ProxyConfig;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.ClassUtils;

/** Which methods a proxy can intercept at all. */
final class MethodShapes implements AopInfrastructureBean {

    private final ConfigurableListableBeanFactory beans;

    MethodShapes(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    /** Refuses a method that no proxy of its class could intercept. */
    void check(Class<?> type, Method method) {
        int modifiers = method.getModifiers();
        if (Modifier.isPrivate(modifiers)) {
            throw cannot(type, method, "it is private", "Make it package-private or more.");
        }
        if (Modifier.isStatic(modifiers)) {
            throw cannot(type, method, "it is static", "Make it an instance method.");
        }
        if (isHidden(type, method)) {
            throw cannot(
                    type,
                    method,
                    "it is package-private and declared in another package than its bean's class",
                    "Make it protected or public.");
        }
        if ((isOfInterfaces(type) || !proxiesClasses()) && isInInterface(type, method)) {
            return;
        }
        if (Modifier.isFinal(modifiers)) {
            throw cannot(type, method, "it is final", "Remove 'final', or open the class in Kotlin.");
        }
        if (Modifier.isFinal(type.getModifiers())) {
            throw cannot(
                    type,
                    method,
                    "its class is final",
                    "Remove 'final' (open the class in Kotlin; a record cannot be), or move the method to an interface "
                            + "and set spring.aop.proxy-target-class=false.");
        }
    }

    /** Nothing but its interfaces tells what such a class is: Spring gives it an interface proxy, come what may. */
    static boolean isOfInterfaces(Class<?> type) {
        return Proxy.isProxyClass(type) || ClassUtils.isLambdaClass(type);
    }

    /** Refuses a method that the bean's JDK proxy does not have. */
    static void checkJdkProxy(Object bean, Class<?> type, Method method) {
        if (Proxy.isProxyClass(bean.getClass())
                && Arrays.stream(bean.getClass().getInterfaces()).noneMatch(i -> isIn(i, type, method))) {
            throw cannot(
                    type,
                    method,
                    "its bean has an interface proxy, and none of the interfaces has the method",
                    "Add it to an interface, or set spring.aop.proxy-target-class=true.");
        }
    }

    static InvalidLockException cannot(Class<?> type, Method method, String problem, String action) {
        return InvalidLockException.of(
                type,
                method,
                problem + ", so its calls cannot be intercepted and would run unlocked",
                action + " If every replica is to run it, annotate it with @EveryReplica.");
    }

    /** A proxy stands in the package of the bean's class and cannot override what only the parent's package sees. */
    private static boolean isHidden(Class<?> type, Method method) {
        int visible = Modifier.PUBLIC | Modifier.PROTECTED | Modifier.PRIVATE;
        Class<?> declaring = method.getDeclaringClass();
        return (method.getModifiers() & visible) == 0
                && !(declaring.getPackage().equals(type.getPackage())
                        && declaring.getClassLoader() == type.getClassLoader());
    }

    private static boolean isInInterface(Class<?> type, Method method) {
        return ClassUtils.getAllInterfacesForClassAsSet(type).stream().anyMatch(i -> isIn(i, type, method));
    }

    /** By what a call of the interface's method leads to: where the interface is generic, its parameter types are others. */
    private static boolean isIn(Class<?> i, Class<?> type, Method method) {
        return Arrays.stream(i.getMethods())
                .anyMatch(m -> m.getName().equals(method.getName())
                        && (m.equals(method)
                                || AopUtils.getMostSpecificMethod(m, type).equals(method)));
    }

    private boolean proxiesClasses() {
        return beans.containsBeanDefinition(AopConfigUtils.AUTO_PROXY_CREATOR_BEAN_NAME)
                && beans.getBean(AopConfigUtils.AUTO_PROXY_CREATOR_BEAN_NAME, ProxyConfig.class)
                        .isProxyTargetClass();
    }
}
