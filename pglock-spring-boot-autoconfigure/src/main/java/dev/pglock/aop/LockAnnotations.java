package dev.pglock.aop;

import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.Schedules;

/**
 * The annotations of one method, merged: composed, repeated and inherited ones included. Found by one finder, so that
 * pointcut, interceptor and verification cannot disagree.
 *
 * @param runOnce ours, also from an interface
 * @param singleton ours, also from an interface
 * @param everyReplica on the method itself
 * @param everyReplicaType on its class
 * @param scheduled whether Spring schedules the method; Spring looks at the most specific method only, and so do we
 */
record LockAnnotations(
        @Nullable RunOnce runOnce,
        @Nullable Singleton singleton,
        boolean everyReplica,
        boolean everyReplicaType,
        boolean scheduled) {

    /**
     * Finds them, on the bridges too that javac makes: where a public class inherits from one that is not, Spring schedules
     * the bridge, which stands for a method that is declared nowhere else.
     *
     * @param method the most specific method
     * @param type the bean's own class
     * @return null if there are none that matter here
     */
    static @Nullable LockAnnotations find(Method method, Class<?> type) {
        if (method.getDeclaringClass() == Object.class) {
            return null;
        }
        RunOnce runOnce = AnnotatedElementUtils.findMergedAnnotation(method, RunOnce.class);
        Singleton singleton = AnnotatedElementUtils.findMergedAnnotation(method, Singleton.class);
        boolean scheduled = isScheduled(method);
        if (runOnce == null && singleton == null && !scheduled) {
            return null;
        }
        return new LockAnnotations(
                runOnce,
                singleton,
                AnnotatedElementUtils.hasAnnotation(method, EveryReplica.class),
                AnnotatedElementUtils.hasAnnotation(type, EveryReplica.class),
                scheduled);
    }

    static boolean isScheduled(Method method) {
        return !schedules(method).isEmpty();
    }

    /** A proxy made of interfaces has no annotations of its own: Spring schedules the methods of its interfaces. */
    static Set<Scheduled> schedules(Method method) {
        if (Proxy.isProxyClass(method.getDeclaringClass())) {
            return AnnotatedElementUtils.findMergedRepeatableAnnotations(method, Scheduled.class, Schedules.class);
        }
        return AnnotatedElementUtils.getMergedRepeatableAnnotations(method, Scheduled.class, Schedules.class);
    }

    /** Whether the method is locked for being scheduled, and for nothing else. */
    boolean onlyScheduled() {
        return scheduled && runOnce == null && singleton == null;
    }
}
