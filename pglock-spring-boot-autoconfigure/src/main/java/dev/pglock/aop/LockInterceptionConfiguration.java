package dev.pglock.aop;

import dev.pglock.LockRegistry;
import java.util.Objects;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.framework.AopInfrastructureBean;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.context.ApplicationContext;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.ImportRuntimeHints;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.util.function.SingletonSupplier;

/**
 * The beans of interception. All are infrastructure and ask for nothing but the container before they are used: an
 * advisor that needed other beans would keep those from being proxied. What they need of each other they ask for by name,
 * because to look for a type is to make every factory bean of the application that does not say what it makes; and they are
 * marked as no beans to be proxied, because for those all advisors of the application would be made first.
 *
 * <p>Expects one bean of type {@link LockedMethodSettings} and one of type {@link LockRegistry}.
 */
@Configuration(proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Import(LockInterceptionConfiguration.AutoProxyCreator.class)
@ImportRuntimeHints(TaskMethod.Hints.class)
public final class LockInterceptionConfiguration {

    private static final String AUTO_CONFIGURATION = "org.springframework.boot.autoconfigure.AutoConfiguration";
    private static final String TRANSACTION_ADVISOR =
            "org.springframework.transaction.config.internalTransactionAdvisor";

    private static final String CONTAINER = "pgLockContainer";
    private static final String SPECS = "pgLockSpecs";
    private static final String AUTO_CONFIGURED = "pgLockAutoConfiguredBeans";
    private static final String SHAPES = "pgLockMethodShapes";
    private static final String TICKS = "pgLockTicks";

    LockInterceptionConfiguration() {}

    /** A parameter of such a type would be looked for among all beans first. */
    static final class Container implements BeanFactoryAware, EnvironmentAware, AopInfrastructureBean {

        private @Nullable ConfigurableListableBeanFactory beans;
        private @Nullable Environment environment;

        @Override
        public void setBeanFactory(BeanFactory factory) {
            beans = (ConfigurableListableBeanFactory) factory;
        }

        @Override
        public void setEnvironment(Environment its) {
            environment = its;
        }

        ConfigurableListableBeanFactory beans() {
            return Objects.requireNonNull(beans);
        }

        Environment environment() {
            return Objects.requireNonNull(environment);
        }
    }

    @Bean(CONTAINER)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static Container pgLockContainer() {
        return new Container();
    }

    @Bean(SPECS)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static LockSpecs pgLockSpecs(
            ObjectProvider<LockedMethodSettings> settings, @Qualifier(CONTAINER) Container container) {
        return new LockSpecs(
                SingletonSupplier.of(settings::getObject),
                new Expressions(container.environment(), container.beans()),
                new AsyncMethods(container.beans()));
    }

    @Bean(AUTO_CONFIGURED)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static AutoConfiguredBeans pgLockAutoConfiguredBeans(@Qualifier(CONTAINER) Container container) {
        return new AutoConfiguredBeans(
                container.beans(), type -> AnnotatedElementUtils.isAnnotated(type, AUTO_CONFIGURATION));
    }

    @Bean(SHAPES)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static MethodShapes pgLockMethodShapes(@Qualifier(CONTAINER) Container container) {
        return new MethodShapes(container.beans());
    }

    @Bean(TICKS)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static Ticks pgLockTicks() {
        return new Ticks();
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static LockAdvisor pgLockAdvisor(
            @Qualifier(SPECS) LockSpecs specs,
            @Qualifier(TICKS) Ticks ticks,
            @Qualifier(AUTO_CONFIGURED) AutoConfiguredBeans autoConfigured,
            @Qualifier(SHAPES) MethodShapes shapes,
            ObjectProvider<LockedMethodSettings> settings,
            ObjectProvider<LockRegistry> registry,
            @Qualifier(CONTAINER) Container container) {
        Supplier<LockedMethodSettings> once = SingletonSupplier.of(settings::getObject);
        LockInterceptor interceptor =
                new LockInterceptor(specs, ticks, once, SingletonSupplier.of(registry::getObject));
        return new LockAdvisor(interceptor, specs, autoConfigured, shapes, once, order(once, container.beans()));
    }

    /** Just outside the transaction advisor, wherever the application has put that one; never inside. */
    private static IntSupplier order(Supplier<LockedMethodSettings> settings, ConfigurableListableBeanFactory beans) {
        return () -> {
            Integer configured = settings.get().order();
            if (!beans.containsBean(TRANSACTION_ADVISOR)) {
                return configured == null ? Ordered.LOWEST_PRECEDENCE - 1 : configured;
            }
            int transactions = beans.getBean(TRANSACTION_ADVISOR, Ordered.class).getOrder();
            int order = configured == null ? outside(transactions) : configured;
            if (order >= transactions) {
                throw new InvalidLockException(
                        "The order of the lock advisor is " + order + ", that of the transaction advisor "
                                + transactions + ": a lock would be released before the transaction commits",
                        "Set pglock.aspect-order to less than " + transactions
                                + ", or a greater order at @EnableTransactionManagement.");
            }
            return order;
        };
    }

    private static int outside(int transactions) {
        return transactions == Ordered.HIGHEST_PRECEDENCE ? transactions : transactions - 1;
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static LockedBeanPostProcessor pgLockBeanPostProcessor(
            @Qualifier(SPECS) LockSpecs specs,
            @Qualifier(AUTO_CONFIGURED) AutoConfiguredBeans autoConfigured,
            @Qualifier(SHAPES) MethodShapes shapes,
            ObjectProvider<LockVerifier> verifier) {
        return new LockedBeanPostProcessor(specs, autoConfigured, shapes, verifier::getObject);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static LockVerifier pgLockVerifier(
            ConfigurableListableBeanFactory beans,
            LockSpecs specs,
            AutoConfiguredBeans autoConfigured,
            MethodShapes shapes,
            Ticks ticks,
            ObjectProvider<LockedMethodSettings> settings) {
        return new LockVerifier(beans, specs, autoConfigured, shapes, ticks, SingletonSupplier.of(settings::getObject));
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static ChildContexts pgLockChildContexts(ApplicationContext context, ObjectProvider<LockVerifier> verifier) {
        return new ChildContexts(context, verifier::getObject);
    }

    @Bean
    static NextTicks pgLockNextTicks(ConfigurableListableBeanFactory beans, Ticks ticks) {
        return new NextTicks(beans, ticks);
    }

    /** The second one after all other configurers, those without an order included: beans that have no definition come last. */
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static SmartInitializingSingleton pgLockTicking(ConfigurableListableBeanFactory beans, Ticks ticks) {
        return () -> {
            TickingConfigurer ticking = new TickingConfigurer(ticks);
            beans.registerSingleton("pgLockFirstTickingConfigurer", ticking.beforeAll());
            beans.registerSingleton("pgLockTickingConfigurer", ticking.afterAll());
        };
    }

    /** Without an auto-proxy creator the annotations would be inert, and nobody would be told. */
    static final class AutoProxyCreator implements ImportBeanDefinitionRegistrar {

        AutoProxyCreator() {}

        @Override
        public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
            AopConfigUtils.registerAutoProxyCreatorIfNecessary(registry);
        }
    }
}
