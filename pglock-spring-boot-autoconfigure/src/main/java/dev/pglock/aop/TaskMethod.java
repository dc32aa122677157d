package dev.pglock.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;
import org.springframework.util.ClassUtils;

/**
 * The scheduled method that a task was made from, as far as the task tells: class, dot, method. Spring's tasks name the class
 * or the interface that declares the method; those of a {@code Mono} or a {@code Flux} name the bean's class, and that is
 * a proxy.
 *
 * @param names under which a locked method may know itself
 * @param isKnown whether there is such a method; if not, the one name is whatever the task says
 */
record TaskMethod(Set<String> names, boolean isKnown) {

    private static final String CLASS_PROXY = "$$SpringCGLIB$$";

    static TaskMethod of(Runnable task) {
        return saying(task.toString());
    }

    static TaskMethod saying(String description) {
        int dot = description.lastIndexOf('.');
        if (dot > 0) {
            String method = description.substring(dot + 1);
            try {
                Class<?> type = ClassUtils.forName(withoutProxy(description.substring(0, dot)), null);
                if (ClassUtils.hasAtLeastOneMethodWithName(type, method)) {
                    return new TaskMethod(
                            Proxy.isProxyClass(type)
                                    ? ofInterfaces(type, method)
                                    : Set.of(name(ClassUtils.getUserClass(type), method)),
                            true);
                }
            } catch (ClassNotFoundException | LinkageError e) {
                // The text of something else.
            }
        }
        return new TaskMethod(Set.of(description), false);
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

    private static String name(Class<?> type, String method) {
        return type.getName() + "." + method;
    }

    private static String withoutProxy(String type) {
        int proxy = type.indexOf(CLASS_PROXY);
        return proxy < 0 ? type : type.substring(0, proxy);
    }
}
