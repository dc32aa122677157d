package dev.pglock.aop;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;
import org.springframework.util.function.SingletonSupplier;

/**
 * Tells the beans that an auto-configuration contributed from the application's own. Those of a class that both import are
 * the application's, and so are those of whatever an import selector or a registrar brings: nobody tells where from, and what
 * is locked by mistake does less harm than what is not.
 */
final class AutoConfiguredBeans implements AopInfrastructureBean {

    private final ConfigurableListableBeanFactory beans;
    private final Predicate<Class<?>> isAutoConfiguration;
    private final Supplier<Set<Class<?>>> imported = SingletonSupplier.of(this::imported);

    /** @param isAutoConfiguration whether a class is one; Spring Boot's business, not this package's */
    AutoConfiguredBeans(ConfigurableListableBeanFactory beans, Predicate<Class<?>> isAutoConfiguration) {
        this.beans = beans;
        this.isAutoConfiguration = isAutoConfiguration;
    }

    /** The same question about the beans of another context. */
    AutoConfiguredBeans in(ConfigurableListableBeanFactory others) {
        return new AutoConfiguredBeans(others, isAutoConfiguration);
    }

    boolean contains(String beanName) {
        Class<?> type = beans.containsBeanDefinition(beanName) ? contributor(beanName) : null;
        return type != null
                && isIn(type, c -> isAutoConfiguration.test(c) || imported.get().contains(c));
    }

    /** The class that has the bean's method; that of the bean itself if there is none. */
    private @Nullable Class<?> contributor(String beanName) {
        // Resolves the method, too.
        Class<?> type = beans.getType(beanName, false);
        BeanDefinition definition = beans.getMergedBeanDefinition(beanName);
        String factory = definition.getFactoryBeanName();
        if (factory != null) {
            return beans.getType(factory, false);
        }
        Method method = definition instanceof RootBeanDefinition root ? root.getResolvedFactoryMethod() : null;
        return method == null ? type : method.getDeclaringClass();
    }

    /** What auto-configurations import by name, and the application does not. */
    private Set<Class<?>> imported() {
        Map<String, Class<?>> others = new HashMap<>();
        Set<Class<?>> imported = new HashSet<>();
        for (String beanName : beans.getBeanDefinitionNames()) {
            BeanDefinition definition = beans.getMergedBeanDefinition(beanName);
            Class<?> type = definition.getFactoryMethodName() == null ? beans.getType(beanName, false) : null;
            if (type != null && isIn(type, isAutoConfiguration)) {
                addImports(ClassUtils.getUserClass(type), imported);
            } else if (type != null) {
                others.put(beanName, ClassUtils.getUserClass(type));
            }
        }
        // What was imported has its class's name; what was scanned or registered has another.
        others.entrySet()
                .removeIf(other -> other.getKey().equals(other.getValue().getName())
                        && isIn(other.getValue(), imported::contains));
        Set<Class<?>> importedByOthers = new HashSet<>(others.values());
        others.values().forEach(other -> addImports(other, importedByOthers));
        imported.removeAll(importedByOthers);
        return imported;
    }

    /** Those that became beans: what others need may not be there, which Spring says in a WARN when it is looked at. */
    private void addImports(Class<?> type, Set<Class<?>> imports) {
        MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY).stream(Import.class)
                .flatMap(annotation -> Arrays.stream(annotation.getClassArray("value")))
                .filter(c -> beans.containsBeanDefinition(c.getName()))
                .filter(c -> !isAutoConfiguration.test(c) && imports.add(c))
                .forEach(c -> addImports(c, imports));
    }

    /** Whether it is true of a class, or of one around it. */
    private static boolean isIn(Class<?> type, Predicate<Class<?>> test) {
        for (Class<?> c = ClassUtils.getUserClass(type); c != null; c = c.getEnclosingClass()) {
            if (test.test(c)) {
                return true;
            }
        }
        return false;
    }
}
