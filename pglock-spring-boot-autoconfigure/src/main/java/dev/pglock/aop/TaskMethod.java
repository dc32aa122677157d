package dev.pglock.aop;

import java.lang.reflect.Field;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.aot.hint.TypeReference;
import org.springframework.scheduling.support.ScheduledMethodRunnable;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * The scheduled method that a task was made from, as far as the task tells: class, dot, method. Spring's tasks say the class
 * or the interface that declares the method, which beans of several classes may have in common, but they know the bean.
 * Those of a {@code Mono} or a {@code Flux} say the bean's class, and that is a proxy.
 *
 * @param names under which a locked method may know itself; one, of the bean's own class, where the bean is known
 * @param isKnown whether there is such a method; if not, the one name is whatever the task says
 * @param key tells the tasks of one class of beans from those of another; the same in all processes but for lambdas and hashes
 */
record TaskMethod(Set<String> names, boolean isKnown, String key) {

    private static final String CLASS_PROXY = "$$SpringCGLIB$$";
    private static final String WRAPPER = "org.springframework.scheduling.config.Task$OutcomeTrackingRunnable";
    private static final String WRAPPED = "runnable";
    private static final @Nullable Field wrapped = wrapped();

    static TaskMethod of(Runnable task) {
        if (unwrapped(task) instanceof ScheduledMethodRunnable scheduled) {
            Class<?> type = ClassUtils.getUserClass(AopProxyUtils.ultimateTargetClass(scheduled.getTarget()));
            if (!MethodShapes.isOfInterfaces(type)) {
                String name = nameOf(type, scheduled.getMethod());
                return new TaskMethod(Set.of(name), true, name);
            }
        }
        return saying(task.toString());
    }

    /** Spring keeps the outcome of each run in a wrapper, which tells no more of its task than its text. */
    private static Runnable unwrapped(Runnable task) {
        return wrapped != null && wrapped.getDeclaringClass().isInstance(task)
                ? (Runnable) Objects.requireNonNull(ReflectionUtils.getField(wrapped, task))
                : task;
    }

    private static @Nullable Field wrapped() {
        try {
            Class<?> wrapper = ClassUtils.forName(WRAPPER, ScheduledMethodRunnable.class.getClassLoader());
            Field field = ReflectionUtils.findField(wrapper, WRAPPED, Runnable.class);
            if (field != null) {
                field.setAccessible(true);
            }
            return field;
        } catch (ClassNotFoundException | LinkageError | InaccessibleObjectException e) {
            return null;
        }
    }

    /** What a native image must keep of the wrapper. */
    static final class Hints implements RuntimeHintsRegistrar {

        Hints() {}

        @Override
        public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
            hints.reflection().registerType(TypeReference.of(WRAPPER), wrapper -> wrapper.withField(WRAPPED));
        }
    }

    static TaskMethod saying(String description) {
        int dot = description.lastIndexOf('.');
        if (dot > 0) {
            String method = description.substring(dot + 1);
            try {
                Class<?> type = ClassUtils.forName(withoutProxy(description.substring(0, dot)), null);
                if (ClassUtils.hasAtLeastOneMethodWithName(type, method)) {
                    String name = name(ClassUtils.getUserClass(type), method);
                    return new TaskMethod(
                            Proxy.isProxyClass(type) ? ofInterfaces(type, method) : Set.of(name), true, name);
                }
            } catch (ClassNotFoundException | LinkageError e) {
                // The text of something else.
            }
        }
        return new TaskMethod(Set.of(description), false, description);
    }

    /** Whatever a task may say that was made from that method, for whatever class declares it. */
    static Set<String> namesOf(Class<?> type, Method method) {
        Set<String> names = ofInterfaces(type, method.getName(), method.getParameterTypes());
        for (Class<?> c = type; c != null && c != Object.class; c = c.getSuperclass()) {
            names.add(name(c, method.getName()));
        }
        return Set.copyOf(names);
    }

    /** Declared there or further up. */
    private static Set<String> ofInterfaces(Class<?> type, String method, Class<?>... parameters) {
        Set<String> names = new LinkedHashSet<>();
        for (Class<?> i : ClassUtils.getAllInterfacesForClassAsSet(type)) {
            Method its = ClassUtils.getMethodIfAvailable(i, method, parameters);
            if (its != null) {
                names.add(name(its.getDeclaringClass(), method));
            }
        }
        return names;
    }

    /** Of the bean's own class, whatever class declares the method. */
    static String nameOf(Class<?> type, Method method) {
        return name(type, method.getName());
    }

    private static String name(Class<?> type, String method) {
        return type.getName() + "." + method;
    }

    private static String withoutProxy(String type) {
        int proxy = type.indexOf(CLASS_PROXY);
        return proxy < 0 ? type : type.substring(0, proxy);
    }
}
