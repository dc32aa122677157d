package dev.pglock.aop;

import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/** Tells the beans that an auto-configuration contributed from the application's own. */
final class AutoConfiguredBeans implements AopInfrastructureBean {

    private final ConfigurableListableBeanFactory beans;
    private final Predicate<Class<?>> isAutoConfiguration;

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
        if (!beans.containsBeanDefinition(beanName)) {
            return false;
        }
        BeanDefinition definition = beans.getMergedBeanDefinition(beanName);
        String factory = definition.getFactoryBeanName();
        return factory != null
                ? isContributed(beans.getType(factory, false))
                : isContributed(beans.getType(beanName, false));
    }

    private boolean isContributed(@Nullable Class<?> type) {
        for (Class<?> c = type; c != null; c = c.getEnclosingClass()) {
            if (isAutoConfiguration.test(org.springframework.util.ClassUtils.getUserClass(c))) {
                return true;
            }
        }
        return false;
    }
}
