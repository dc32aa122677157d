package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.aop.InvalidLockException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.SubmissionPublisher;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.SmartFactoryBean;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskExecutionAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.AliasFor;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.AsyncAnnotationBeanPostProcessor;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.Schedules;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Every shape that a method or its bean may have: it is locked, or the start is refused. None runs unlocked. */
class ShapesTests {

    private static final String CLASS_PROXIES = "spring.aop.proxy-target-class=true";
    private static final String JDK_PROXIES = "spring.aop.proxy-target-class=false";
    private static final String UNLOCKED = "UNLOCKED";

    /** The lock under which each body ran. */
    private static final List<String> ran = new CopyOnWriteArrayList<>();

    private static <T> T body(T result) {
        ran.add(LockContext.currentIfAny().map(LockHandle::name).orElse(UNLOCKED));
        return result;
    }

    // ---- the table

    @FunctionalInterface
    private interface Call {

        void make(ApplicationContext context) throws Exception;
    }

    /** One shape. Exactly one of lock and refusal is given. */
    private record Shape(
            String text,
            List<Class<?>> beans,
            @Nullable String lock,
            @Nullable Call call,
            @Nullable String refusal,
            List<String> properties) {

        Shape with(String... more) {
            List<String> all = new ArrayList<>(properties);
            all.addAll(List.of(more));
            return new Shape(text + " " + String.join(" ", more), beans, lock, call, refusal, all);
        }

        Shape and(Class<?>... more) {
            List<Class<?>> all = new ArrayList<>(beans);
            all.addAll(List.of(more));
            return new Shape(text, all, lock, call, refusal, properties);
        }

        @Override
        public String toString() {
            return text + (refusal == null ? ": locked" : ": refused");
        }
    }

    private static <T> Shape locked(String text, Class<T> bean, String lock, BeanCall<? super T> call) {
        return new Shape(
                text, List.of(bean), lock, context -> call.make(context.getBean(bean)), null, List.of(CLASS_PROXIES));
    }

    private static <T> Shape behind(Class<T> type, Shape shape, BeanCall<? super T> call) {
        return new Shape(
                shape.text(),
                shape.beans(),
                shape.lock(),
                context -> call.make(context.getBean(type)),
                null,
                shape.properties());
    }

    private static Shape ticking(String text, Class<?> bean, String lock) {
        return new Shape(text, List.of(bean, Scheduling.class), lock, null, null, List.of(CLASS_PROXIES));
    }

    private static Shape refused(String text, Class<?> bean, String refusal) {
        return new Shape(text, List.of(bean, Scheduling.class), null, null, refusal, List.of(CLASS_PROXIES));
    }

    @FunctionalInterface
    private interface BeanCall<T> {

        void make(T bean) throws Exception;
    }

    static Stream<Shape> shapes() {
        return Stream.of(
                // visibility and modifiers
                locked("public method", Visible.class, "public", Visible::published),
                locked("protected method", Visible.class, "protected", Visible::guarded),
                locked("package-private method", Visible.class, "package", Visible::near),
                ticking("package-private scheduled method", NearTick.class, "NearTick.tick"),
                refused("private method", PrivateTick.class, "it is private"),
                refused("static method", StaticTick.class, "it is static"),
                refused("final method", FinalTick.class, "it is final"),
                refused("final class", FinalClass.class, "its class is final"),
                refused("record", RecordBean.class, "its class is final"),
                refused("package-private method of another package", Hidden.class, "it is package-private"),
                // interfaces, generics, inheritance; proxies of classes and of interfaces
                behind(Job.class, locked("interface method", JobImpl.class, "interface", JobImpl::run), Job::run),
                behind(Job.class, locked("interface method", JobImpl.class, "interface", JobImpl::run), Job::run)
                        .with(JDK_PROXIES),
                behind(Job.class, locked("interface of a final class", FinalJob.class, "interface", Job::run), Job::run)
                        .with(JDK_PROXIES),
                behind(Job.class, locked("interface of a record", RecordJob.class, "interface", Job::run), Job::run)
                        .with(JDK_PROXIES),
                locked("default method", DefaultImpl.class, "default", WithDefault::run),
                behind(
                                WithDefault.class,
                                locked("default method", DefaultImpl.class, "default", WithDefault::run),
                                WithDefault::run)
                        .with(JDK_PROXIES),
                locked("bridge of a generic interface", GenericImpl.class, "generic-7", bean -> viaInterface(bean)),
                behind(
                                Generic.class,
                                locked("bridge of a generic interface", GenericImpl.class, "generic-7", bean -> {}),
                                ShapesTests::viaInterface)
                        .with(JDK_PROXIES),
                locked("method of a generic class", GenericChild.class, "base", bean -> bean.run(7L)),
                locked("inherited method", Child.class, "inherited", Base::inherited),
                locked("overridden method", Child.class, "overridden", Child::overridden),
                // bridges: javac makes them in a public class for what it inherits from one that is not
                ticking("scheduled method of a non-public base", PublicTick.class, "PublicTick.tick"),
                ticking(
                        "scheduled method of a non-public base, further up",
                        PublicGrandchild.class,
                        "PublicGrandchild.tick"),
                ticking("the same, @Async", PublicAsyncTick.class, "PublicAsyncTick.tick")
                        .and(AsyncLast.class),
                ticking("the same, behind an interface", PublicTickBehind.class, "PublicTickBehind.tick")
                        .with(JDK_PROXIES),
                ticking("the same, beside another locked method", PublicTickAndMore.class, "PublicTickAndMore.tick"),
                ticking(
                        "scheduled default method of a non-public interface",
                        PublicDefault.class,
                        "PublicDefault.tick"),
                locked("method of a non-public base", PublicChild.class, "inherited", PublicChild::inherited),
                locked("overload of a non-public base", PublicOverloads.class, "text", bean -> bean.run("x")),
                locked("overload of a non-public base", PublicOverloads.class, "object", bean -> bean.run(7L)),
                locked("method of a non-public generic base", PublicGeneric.class, "base", bean -> bean.run(7L)),
                locked("result narrowed by the subclass", Narrowed.class, "narrowed", Narrowing::run),
                refused(
                                "method that its interface proxy lacks",
                                ClassOnly.class,
                                "none of the interfaces has the method")
                        .with(JDK_PROXIES),
                locked("own proxy creator", Visible.class, "public", Visible::published)
                        .with("spring.aop.auto=false"),
                // annotations
                ticking("composed annotation", Composed.class, "composed"),
                ticking("repeated @Scheduled", Repeated.class, "Repeated.tick"),
                ticking("@Schedules", Container.class, "Container.tick"),
                // other advice
                locked("@Async of the highest precedence", AsyncJob.class, "AsyncJob.run", AsyncJob::run)
                        .and(AsyncFirst.class),
                locked("@Async of the least precedence", AsyncJob.class, "AsyncJob.run", AsyncJob::run)
                        .and(AsyncLast.class),
                locked("@Async inside of other advice", AsyncJob.class, "AsyncJob.run", AsyncJob::run)
                        .and(AsyncInside.class),
                refused("@Async behind an interface", AsyncInterfaceJob.class, "its lock is outside of @Async")
                        .and(AsyncFirst.class)
                        .with(JDK_PROXIES),
                behind(
                                Job.class,
                                locked("@Async behind an interface", AsyncInterfaceJob.class, "interface", bean -> {}),
                                Job::run)
                        .and(AsyncLast.class)
                        .with(JDK_PROXIES),
                refused("@Async behind an interface that does not say @RunOnce", AsyncOther.class, "was not proxied")
                        .and(AsyncFirst.class)
                        .with(JDK_PROXIES),
                locked("@Retryable", RetryJob.class, "retry", RetryJob::run),
                locked("@Transactional", TransactionalJob.class, "transactional", TransactionalJob::run),
                // beans
                locked("scoped proxy", Scoped.class, "Scoped.run", Scoped::run).and(ThreadScope.class),
                locked("lazy bean", LazyJob.class, "lazy", LazyJob::run),
                refused("lazy bean with a final method", LazyFinal.class, "it is final"),
                locked("circular reference, locked bean first", CircleA.class, "circle", CircleA::run)
                        .and(CircleB.class),
                locked("circular reference, locked bean last", CircleB.class, "circle", b -> b.a.run())
                        .and(CircleA.class),
                refused("circular reference, scheduled bean first", TickCircleA.class, "circular reference")
                        .and(TickCircleB.class),
                ticking("circular reference, scheduled bean last", TickCircleB.class, "TickCircleA.tick")
                        .and(TickCircleA.class),
                ticking("lazy reference to itself", SelfReference.class, "SelfReference.tick"),
                behind(Job.class, locked("lambda", LambdaJob.class, "interface", bean -> {}), Job::run),
                behind(
                        Job.class,
                        locked("somebody else's proxy of an interface", ProxyJob.class, "interface", bean -> {}),
                        Job::run),
                ticking("somebody else's proxy of a scheduled interface", ProxyTick.class, "proxy tick"),
                refused("the same without a name", ProxyTickUnnamed.class, "no name of its own"),
                refused("lambda without a name", LambdaUnnamed.class, "no name of its own"),
                refused("anonymous class without a name", Anonymous.class, "no name of its own"),
                ticking("configuration class", ConfigurationTick.class, "ConfigurationTick.tick"),
                ticking("factory bean", FactoryTick.class, "FactoryTick.tick"),
                ticking("product of a factory bean", ProductTick.class, "NearTick.tick"),
                refused("final method of such a product", FinalProduct.class, "it is final"),
                ticking("bean in a proxy of another post-processor", NearTick.class, "NearTick.tick")
                        .and(Wrapping.class),
                locked("several beans of one class", Twins.class, "twin", twins -> {
                    twins.one().run();
                    twins.two().run();
                }),
                // results
                locked("Optional", Results.class, "optional", Results::optional),
                locked(
                        "CompletableFuture",
                        Results.class,
                        "future",
                        bean -> bean.future().join()),
                locked(
                        "CompletionStage",
                        Results.class,
                        "stage",
                        bean -> bean.stage().toCompletableFuture().join()),
                locked("Mono", Results.class, "mono", bean -> bean.mono().block(Duration.ofSeconds(5))),
                locked("Flux", Results.class, "flux", bean -> bean.flux().blockLast(Duration.ofSeconds(5))),
                ticking("scheduled Mono", MonoTick.class, "MonoTick.tick"),
                ticking("scheduled Flux", FluxTick.class, "FluxTick.tick"),
                ticking("scheduled primitive", PrimitiveTick.class, "PrimitiveTick.tick"),
                refused("primitive", Primitive.class, "returns the primitive 'int'"),
                refused("plain Future", PlainFuture.class, "whose end nobody is told of"),
                refused("subclass of CompletableFuture", OwnFuture.class, "whose end nobody is told of"),
                refused("Flow.Publisher", FlowResult.class, "whose work begins after the call"),
                refused("generic result that is a plain Future", GenericFuture.class, "whose end nobody is told of"),
                refused("suspend function", Suspend.class, "it is a suspend function"));
    }

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    TaskExecutionAutoConfiguration.class,
                    TaskSchedulingAutoConfiguration.class,
                    PgLockAutoConfiguration.class,
                    PgLockInterceptionAutoConfiguration.class))
            .withAllowCircularReferences(true)
            .withPropertyValues("spring.application.name=test", "pglock.strategy=local");

    @ParameterizedTest
    @MethodSource("shapes")
    void everyShapeIsLockedOrRefused(Shape shape) {
        ran.clear();
        runner.withPropertyValues(shape.properties().toArray(String[]::new))
                .withUserConfiguration(shape.beans().toArray(Class<?>[]::new))
                .run(context -> {
                    if (shape.refusal() != null) {
                        assertThat(context).hasFailed();
                        assertRefused(context.getStartupFailure(), shape);
                    } else {
                        assertThat(context).hasNotFailed();
                        if (shape.call() != null) {
                            shape.call().make(context);
                        }
                        await().atMost(Duration.ofSeconds(5)).until(() -> !ran.isEmpty());
                        assertThat(ran).containsOnly(shape.lock());
                    }
                });
        assertThat(ran).doesNotContain(UNLOCKED);
    }

    private static void assertRefused(Throwable failure, Shape shape) {
        Throwable cause = failure;
        while (cause != null && !(cause instanceof InvalidLockException)) {
            cause = cause.getCause();
        }
        assertThat(cause).as("%s", failure).isInstanceOf(InvalidLockException.class);
        assertThat(cause).hasMessageContaining(shape.refusal()).hasMessageStartingWith("Method '");
        assertThat(((InvalidLockException) cause).action()).isNotBlank();
        assertThat(ran).isEmpty();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {}

    // ---- visibility and modifiers

    static class Visible {

        @RunOnce("public")
        public void published() {
            body("");
        }

        @RunOnce("protected")
        protected void guarded() {
            body("");
        }

        @RunOnce("package")
        void near() {
            body("");
        }
    }

    static class NearTick {

        @Scheduled(fixedDelay = 50)
        void tick() {
            body("");
        }
    }

    static class PrivateTick {

        @Scheduled(fixedDelay = 10)
        private void tick() {
            body("");
        }
    }

    static class StaticTick {

        @Scheduled(fixedDelay = 10)
        public static void tick() {
            body("");
        }
    }

    static class FinalTick {

        @Scheduled(fixedDelay = 10)
        public final void tick() {
            body("");
        }
    }

    static final class FinalClass {

        @Scheduled(fixedDelay = 10)
        public void tick() {
            body("");
        }
    }

    record RecordBean() {

        @RunOnce
        public void run() {
            body("");
        }
    }

    static class Hidden extends dev.pglock.aop.elsewhere.HiddenBase {}

    // ---- interfaces, generics, inheritance

    interface Job {

        @RunOnce("interface")
        void run();
    }

    static class JobImpl implements Job {

        @Override
        public void run() {
            body("");
        }
    }

    static final class FinalJob implements Job {

        @Override
        public void run() {
            body("");
        }
    }

    record RecordJob() implements Job {

        @Override
        public void run() {
            body("");
        }
    }

    interface WithDefault {

        @RunOnce("default")
        default void run() {
            body("");
        }
    }

    static class DefaultImpl implements WithDefault {}

    interface Generic<T> {

        void run(T argument);
    }

    static class GenericImpl implements Generic<Long> {

        @Override
        @RunOnce("generic-#{#p0}")
        public void run(Long argument) {
            body("");
        }
    }

    @SuppressWarnings("unchecked")
    private static void viaInterface(Generic<?> bean) {
        ((Generic<Long>) bean).run(7L);
    }

    abstract static class GenericBase<T> {

        @RunOnce("base")
        public Optional<T> run(T argument) {
            return Optional.of(body(argument));
        }
    }

    static class GenericChild extends GenericBase<Long> {}

    static class Base {

        @RunOnce("inherited")
        public void inherited() {
            body("");
        }

        @RunOnce("overridden")
        public void overridden() {
            throw new UnsupportedOperationException();
        }
    }

    static class Child extends Base {

        @Override
        public void overridden() {
            body("");
        }
    }

    // ---- bridges

    abstract static class TickBase {

        @Scheduled(fixedDelay = 50)
        public void tick() {
            body("");
        }
    }

    public static class PublicTick extends TickBase {}

    public static class PublicGrandchild extends PublicTick {}

    public static class PublicTickAndMore extends TickBase {

        @RunOnce("more")
        public void more() {}
    }

    interface Ticking {

        void tick();
    }

    public static class PublicTickBehind extends TickBase implements Ticking {}

    abstract static class AsyncTickBase {

        @Async
        @Scheduled(fixedDelay = 50)
        public void tick() {
            assertThat(Thread.currentThread().getName()).doesNotContain("scheduling");
            body("");
        }
    }

    public static class PublicAsyncTick extends AsyncTickBase {}

    interface DefaultTick {

        @Scheduled(fixedDelay = 50)
        default void tick() {
            body("");
        }
    }

    public static class PublicDefault implements DefaultTick {}

    public static class PublicChild extends Base {}

    abstract static class Overloads {

        @RunOnce("text")
        public void run(String argument) {
            body("");
        }

        @RunOnce("object")
        public void run(Object argument) {
            body("");
        }
    }

    public static class PublicOverloads extends Overloads {}

    public static class PublicGeneric extends GenericBase<Long> {}

    abstract static class Narrowing {

        protected abstract Object run();
    }

    public static class Narrowed extends Narrowing {

        @Override
        @RunOnce("narrowed")
        protected String run() {
            return body("");
        }
    }

    interface Other {

        void other();
    }

    static class ClassOnly implements Other {

        @Override
        public void other() {}

        @Scheduled(fixedDelay = 10)
        public void tick() {
            body("");
        }
    }

    // ---- beans that were made in some other way

    @Configuration(proxyBeanMethods = false)
    static class LambdaJob {

        @Bean
        Job job() {
            return () -> body("");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ProxyJob {

        @Bean
        Job job() {
            return proxy(Job.class, () -> body(""));
        }
    }

    interface ScheduledOne {

        @Scheduled(fixedDelay = 50)
        @RunOnce("proxy tick")
        void tick();
    }

    interface ScheduledUnnamed {

        @Scheduled(fixedDelay = 50)
        void tick();
    }

    private static <T> T proxy(Class<T> type, T behind) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (proxy, method, arguments) -> method.invoke(behind, arguments)));
    }

    @Configuration(proxyBeanMethods = false)
    static class ProxyTick {

        @Bean
        ScheduledOne tick() {
            return proxy(ScheduledOne.class, () -> body(""));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ProxyTickUnnamed {

        @Bean
        ScheduledUnnamed tick() {
            return proxy(ScheduledUnnamed.class, () -> body(""));
        }
    }

    interface Unnamed {

        @RunOnce
        void run();
    }

    @Configuration(proxyBeanMethods = false)
    static class LambdaUnnamed {

        @Bean
        Unnamed unnamed() {
            return () -> body("");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Anonymous {

        @Bean
        Runnable anonymous() {
            return new Runnable() {
                @Override
                @Scheduled(fixedDelay = 10)
                public void run() {
                    body("");
                }
            };
        }
    }

    @Configuration
    static class ConfigurationTick {

        @Scheduled(fixedDelay = 50)
        void tick() {
            body("");
        }
    }

    static class FactoryTick implements FactoryBean<String> {

        @Override
        public String getObject() {
            return "";
        }

        @Override
        public Class<?> getObjectType() {
            return String.class;
        }

        @Scheduled(fixedDelay = 50)
        void tick() {
            body("");
        }
    }

    /** Does not tell what it makes before it has made it, and that is looked at as a product only. */
    static class Factory implements SmartFactoryBean<Object> {

        private final Object product;

        Factory(Object product) {
            this.product = product;
        }

        @Override
        public Object getObject() {
            return product;
        }

        @Override
        public @Nullable Class<?> getObjectType() {
            return null;
        }

        @Override
        public boolean isEagerInit() {
            return true;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ProductTick {

        @Bean
        static Factory product() {
            return new Factory(new NearTick());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FinalProduct {

        @Bean
        static Factory product() {
            return new Factory(new FinalTick());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Wrapping {

        @Bean
        static BeanPostProcessor wrapping() {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String beanName) {
                    if (!(bean instanceof NearTick)) {
                        return bean;
                    }
                    ProxyFactory proxy = new ProxyFactory(bean);
                    proxy.setProxyTargetClass(true);
                    return proxy.getProxy();
                }
            };
        }
    }

    // ---- annotations

    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Scheduled(fixedDelay = 50)
    @RunOnce
    @interface Tick {

        @AliasFor(annotation = RunOnce.class, attribute = "name")
        String name();
    }

    static class Composed {

        @Tick(name = "composed")
        public void tick() {
            body("");
        }
    }

    static class Repeated {

        @Scheduled(fixedDelay = 50)
        @Scheduled(fixedDelay = 70)
        public void tick() {
            body("");
        }
    }

    static class Container {

        @Schedules({@Scheduled(fixedDelay = 50), @Scheduled(fixedDelay = 70)})
        public void tick() {
            body("");
        }
    }

    // ---- other advice

    @Configuration(proxyBeanMethods = false)
    @EnableAsync(order = Ordered.HIGHEST_PRECEDENCE)
    static class AsyncFirst {}

    @Configuration(proxyBeanMethods = false)
    @EnableAsync(order = Ordered.LOWEST_PRECEDENCE)
    static class AsyncLast {}

    /** What an application does that wants its own advice outside of the hand-over. */
    @Configuration(proxyBeanMethods = false)
    static class AsyncInside {

        @Bean
        static AsyncAnnotationBeanPostProcessor async() {
            AsyncAnnotationBeanPostProcessor async = new AsyncAnnotationBeanPostProcessor();
            async.setBeforeExistingAdvisors(false);
            return async;
        }
    }

    static class AsyncOther implements Other {

        @Override
        @Async
        @RunOnce
        public void other() {
            body("");
        }
    }

    static class AsyncInterfaceJob implements Job {

        @Override
        @Async
        public void run() {
            assertThat(Thread.currentThread().getName()).doesNotContain("main");
            body("");
        }
    }

    static class AsyncJob {

        @Async
        @RunOnce
        public void run() {
            assertThat(Thread.currentThread().getName()).doesNotContain("main");
            try {
                Thread.sleep(50);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            body("");
            LockContext.current().ensureHeld();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableResilientMethods(proxyTargetClass = true)
    static class RetryJob {

        private int attempts;

        @RunOnce("retry")
        @Retryable(delay = 1)
        public void run() {
            body("");
            if (++attempts < 3) {
                throw new IllegalStateException("once more");
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement
    static class TransactionalJob {

        @Bean
        PlatformTransactionManager transactionManager() {
            return new Transactions();
        }

        @RunOnce("transactional")
        @Transactional
        public void run() {}
    }

    /** Its commits are what must run under the lock. */
    static final class Transactions extends AbstractPlatformTransactionManager {

        private static final long serialVersionUID = 1L;

        @Override
        protected Object doGetTransaction() {
            return new Object();
        }

        @Override
        protected void doBegin(Object transaction, TransactionDefinition definition) {}

        @Override
        protected void doCommit(DefaultTransactionStatus status) {
            body("");
        }

        @Override
        protected void doRollback(DefaultTransactionStatus status) {}
    }

    // ---- beans

    @Scope(value = "thread", proxyMode = ScopedProxyMode.TARGET_CLASS)
    static class Scoped {

        @RunOnce
        public void run() {
            body("");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ThreadScope {

        @Bean
        static org.springframework.beans.factory.config.CustomScopeConfigurer scopes() {
            org.springframework.beans.factory.config.CustomScopeConfigurer scopes =
                    new org.springframework.beans.factory.config.CustomScopeConfigurer();
            scopes.addScope("thread", new SimpleThreadScope());
            return scopes;
        }
    }

    @Lazy
    static class LazyJob {

        @RunOnce("lazy")
        public void run() {
            body("");
        }
    }

    @Lazy
    static class LazyFinal {

        @RunOnce
        public final void run() {
            body("");
        }
    }

    static class CircleA {

        @Autowired
        CircleB b;

        @RunOnce("circle")
        public void run() {
            body("");
        }
    }

    static class CircleB {

        @Autowired
        CircleA a;
    }

    static class TickCircleA {

        @Autowired
        TickCircleB b;

        @Scheduled(fixedDelay = 50)
        public void tick() {
            body("");
        }
    }

    static class TickCircleB {

        @Autowired
        TickCircleA a;
    }

    static class SelfReference {

        @Autowired
        @Lazy
        SelfReference self;

        @Scheduled(fixedDelay = 50)
        public void tick() {
            body("");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Twins {

        @Autowired
        ApplicationContext context;

        @Bean
        Twin first() {
            return new Twin();
        }

        @Bean
        Twin second() {
            return new Twin();
        }

        Twin one() {
            return context.getBean("first", Twin.class);
        }

        Twin two() {
            return context.getBean("second", Twin.class);
        }
    }

    static class Twin {

        @Singleton("twin")
        public void run() {
            body("");
        }
    }

    // ---- results

    static class Results {

        @RunOnce("optional")
        public Optional<String> optional() {
            return Optional.of(body("x"));
        }

        @RunOnce("future")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture(body("x"));
        }

        @RunOnce("stage")
        public CompletionStage<String> stage() {
            return CompletableFuture.completedStage(body("x"));
        }

        @RunOnce("mono")
        public Mono<String> mono() {
            return Mono.just(body("x"));
        }

        @RunOnce("flux")
        public Flux<String> flux() {
            return Flux.just(body("x"));
        }
    }

    static class MonoTick {

        @Scheduled(fixedDelay = 50)
        public Mono<String> tick() {
            return Mono.just(body("x"));
        }
    }

    static class FluxTick {

        @Scheduled(fixedRate = 50)
        public Flux<String> tick() {
            return Flux.just(body("x"));
        }
    }

    static class PrimitiveTick {

        @Scheduled(fixedDelay = 50)
        public int tick() {
            return body(3);
        }
    }

    static class Primitive {

        @RunOnce
        public int run() {
            return body(3);
        }
    }

    static class PlainFuture {

        @RunOnce
        public Future<String> run() {
            return CompletableFuture.completedFuture(body("x"));
        }
    }

    static class OwnFuture {

        static class Own<T> extends CompletableFuture<T> {}

        @RunOnce
        public Own<String> run() {
            return new Own<>();
        }
    }

    static class FlowResult {

        @Scheduled(fixedDelay = 10)
        public Flow.Publisher<String> run() {
            return new SubmissionPublisher<>();
        }
    }

    abstract static class GenericResult<T> {

        @RunOnce
        public T run() {
            throw new UnsupportedOperationException();
        }
    }

    static class GenericFuture extends GenericResult<Future<String>> {}

    static class Suspend {

        @RunOnce
        public Object run(kotlin.coroutines.Continuation<Object> continuation) {
            return continuation;
        }
    }
}
