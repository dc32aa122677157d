package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Arrays;
import org.springframework.aop.Pointcut;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.target.EmptyTargetSource;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.AbstractBeanFactory;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.AsyncAnnotationAdvisor;
import org.springframework.scheduling.annotation.AsyncAnnotationBeanPostProcessor;

/**
 * Which methods are handed to another thread. {@code @Async} is one annotation of several that do it, and
 * {@code @EnableAsync(annotation = …)} names another: Spring's own post-processor is asked for its pointcut.
 */
final class AsyncMethods {

    private final ConfigurableListableBeanFactory beans;

    AsyncMethods(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    boolean include(Method method, Class<?> type) {
        return AnnotatedElementUtils.hasAnnotation(method, Async.class)
                || AnnotatedElementUtils.hasAnnotation(type, Async.class)
                || (beans instanceof AbstractBeanFactory factory
                        && factory.getBeanPostProcessors().stream()
                                .anyMatch(processor -> processor instanceof AsyncAnnotationBeanPostProcessor async
                                        && handsOver(async, method, type)));
    }

    /** It tells nobody its pointcut, but adds its advisor to whatever proxy of such a class it sees. */
    private static boolean handsOver(AsyncAnnotationBeanPostProcessor async, Method method, Class<?> type) {
        ProxyFactory seen = new ProxyFactory();
        seen.setTargetSource(EmptyTargetSource.forClass(type));
        Object ignored = async.postProcessAfterInitialization(seen, type.getName());
        return Arrays.stream(seen.getAdvisors())
                .anyMatch(advisor ->
                        advisor instanceof AsyncAnnotationAdvisor its && matches(its.getPointcut(), method, type));
    }

    private static boolean matches(Pointcut pointcut, Method method, Class<?> type) {
        return pointcut.getClassFilter().matches(type)
                && pointcut.getMethodMatcher().matches(method, type);
    }
}
