package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.RunOnce;
import dev.pglock.aop.InvalidLockException;
import dev.pglock.aop.LockInterceptionConfiguration;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.GenericBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.core.OverridingClassLoader;
import org.springframework.samples.SampleJob;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** What the check after start-up says, and what it does about it. */
@ExtendWith(OutputCaptureExtension.class)
class VerificationTests {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    PgLockAutoConfiguration.class,
                    PgLockInterceptionAutoConfiguration.class))
            .withPropertyValues("spring.application.name=test", "pglock.strategy=local");

    /** Somebody else's, that an import may confuse with ours. */
    @Retention(RetentionPolicy.RUNTIME)
    @interface Singleton {}

    static class WrongImport {

        @Singleton
        public void run() {}
    }

    static class FinalTick {

        @Scheduled(cron = "-")
        public final void tick() {}
    }

    static class Listeners {

        @EventListener(ApplicationReadyEvent.class)
        @RunOnce
        public void ready() {}

        @EventListener
        @RunOnce
        public void refreshed(ContextRefreshedEvent event) {}

        @EventListener(ApplicationReadyEvent.class)
        @RunOnce(name = "remembered", version = "1")
        public void remembered() {}
    }

    static class Jobs {

        @Scheduled(cron = "-")
        public void locked() {}

        @Scheduled(cron = "-")
        @EveryReplica
        public void everywhere() {}

        @RunOnce(name = "named", strategy = dev.pglock.annotation.Strategy.LEASE)
        public void named() {}
    }

    @Test
    void anotherSingletonOnAMethodIsNamedAsTheWrongImport() {
        runner.withBean(WrongImport.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .isInstanceOfSatisfying(InvalidLockException.class, e -> {
                            assertThat(e)
                                    .hasMessageContaining("@" + Singleton.class.getName() + ", which locks nothing");
                            assertThat(e.action()).contains("dev.pglock.annotation.Singleton");
                        }));
    }

    static class Optional {}

    static class NeedsOptional {

        public void use(Optional optional) {}
    }

    /** A copy of {@link NeedsOptional} for which the other class is not there. */
    private static Class<?> withoutOptional() throws ClassNotFoundException {
        return new OverridingClassLoader(VerificationTests.class.getClassLoader()) {
            @Override
            protected boolean isEligibleForOverriding(String name) {
                return Set.of(VerificationTests.class.getName(), NeedsOptional.class.getName())
                        .contains(name);
            }

            @Override
            public Class<?> loadClass(String name) throws ClassNotFoundException {
                if (name.equals(Optional.class.getName())) {
                    throw new ClassNotFoundException(name);
                }
                return super.loadClass(name);
            }
        }.loadClass(NeedsOptional.class.getName());
    }

    private static void registerLazily(
            ConfigurableApplicationContext context, String name, GenericBeanDefinition bean) {
        bean.setLazyInit(true);
        ((BeanDefinitionRegistry) context.getBeanFactory()).registerBeanDefinition(name, bean);
    }

    /** Spring starts with it, as long as nobody asks for it. */
    @Test
    void aLazyBeanThatCannotBeCreatedIsLeftAlone() throws Exception {
        GenericBeanDefinition unusable = new GenericBeanDefinition();
        unusable.setBeanClass(withoutOptional());
        runner.withInitializer(context -> registerLazily(context, "unusable", unusable))
                .withBean(Jobs.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThatExceptionOfType(BeanCreationException.class)
                            .isThrownBy(() -> context.getBean("unusable"));
                });
    }

    @Test
    void lazyBeansAreChecked() {
        GenericBeanDefinition lazy = new GenericBeanDefinition();
        lazy.setBeanClass(FinalTick.class);
        runner.withInitializer(context -> registerLazily(context, "lazy", lazy))
                .run(context -> assertThat(context.getStartupFailure())
                        .rootCause()
                        .isInstanceOf(InvalidLockException.class)
                        .hasMessageContaining("it is final"));
    }

    @Test
    void aMethodThatCannotBeLockedFailsTheStartOrWarnsOrIsLeftAlone(CapturedOutput output) {
        ApplicationContextRunner wrong = runner.withBean(FinalTick.class);
        wrong.run(context -> assertThat(context).hasFailed());
        wrong.withPropertyValues("pglock.verification=warn").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .contains("Method 'tick' of " + FinalTick.class.getName() + ": it is final")
                    .contains("it runs WITHOUT its lock");
        });
        int before = output.getAll().length();
        wrong.withPropertyValues("pglock.verification=off").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output.getAll().substring(before)).doesNotContain("WITHOUT its lock");
        });
    }

    /** Who runs it sees whether it is the bean, and not an empty proxy, and whether it is locked. */
    static class Refused {

        static final List<String> RAN = new CopyOnWriteArrayList<>();

        private final List<String> field = List.of("its field is set");

        final void ran() {
            RAN.add(LockContext.currentIfAny().isPresent() ? "locked" : field.get(0));
        }
    }

    static class FinalMethod extends Refused {

        @Scheduled(fixedDelay = 50)
        public final void tick() {
            ran();
        }
    }

    static final class FinalClass extends Refused {

        @Scheduled(fixedDelay = 50)
        public void tick() {
            ran();
        }
    }

    static class PrivateMethod extends Refused {

        @Scheduled(fixedDelay = 50)
        @SuppressWarnings("UnusedMethod")
        private void tick() {
            ran();
        }
    }

    static class SingletonTick extends Refused {

        @Scheduled(fixedDelay = 50)
        @dev.pglock.annotation.Singleton
        public void tick() {
            ran();
        }
    }

    static class BadDuration extends Refused {

        @Scheduled(fixedDelay = 50)
        @RunOnce(leaseDuration = "soon")
        public void tick() {
            ran();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {}

    @ParameterizedTest
    @ValueSource(
            classes = {FinalMethod.class, FinalClass.class, PrivateMethod.class, SingletonTick.class, BadDuration.class
            })
    void whatIsRefusedWithAWarningRunsOnItsBeanWithoutALock(Class<?> type, CapturedOutput output) {
        ApplicationContextRunner wrong =
                runner.withUserConfiguration(Scheduling.class).withBean(type);
        wrong.run(context -> assertThat(context).hasFailed());
        Refused.RAN.clear();
        wrong.withPropertyValues("pglock.verification=warn").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).containsOnlyOnce("it runs WITHOUT its lock");
            await().atMost(Duration.ofSeconds(10)).until(() -> Refused.RAN.size() >= 3);
            assertThat(Refused.RAN).containsOnly("its field is set");
        });
    }

    @Test
    void aStartListenerWithoutAVersionIsAWarning(CapturedOutput output) {
        runner.withBean(Listeners.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .contains("Listeners.ready listens to ApplicationReadyEvent with @RunOnce but without a version")
                    .contains("Listeners.refreshed listens to ContextRefreshedEvent")
                    .doesNotContain("Listeners.remembered listens");
        });
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Child {

        static final AtomicInteger runs = new AtomicInteger();

        /** Later than the start, which is to fail. */
        @Scheduled(initialDelay = 200, fixedDelay = 50)
        void tick() {
            runs.incrementAndGet();
        }
    }

    private static AnnotationConfigApplicationContext child(
            @Nullable ApplicationContext parent, Class<?>... configuration) {
        AnnotationConfigApplicationContext child = new AnnotationConfigApplicationContext();
        child.setParent(parent);
        child.register(configuration);
        return child;
    }

    @Test
    void aChildContextInWhichNothingWouldBeLockedFailsItsStart() {
        runner.run(context -> {
            try (AnnotationConfigApplicationContext child = child(context, Child.class)) {
                assertThatExceptionOfType(InvalidLockException.class)
                        .isThrownBy(child::refresh)
                        .withMessageContaining("Method 'tick' of " + Child.class.getName())
                        .withMessageContaining("is in a child context that has no auto-configuration of pglock")
                        .satisfies(e -> assertThat(e.action()).contains("@EnableAutoConfiguration"));
                assertThat(child.isActive()).isFalse();
            }
            try (AnnotationConfigApplicationContext child =
                    child(context, Child.class, LockInterceptionConfiguration.class)) {
                child.refresh();
            }
            try (AnnotationConfigApplicationContext child = child(context, Elsewhere.class)) {
                child.refresh();
            }
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class Core {

        @Scheduled(cron = "-")
        public void tick() {}
    }

    @Test
    void aParentContextInWhichNothingIsLockedFailsTheStartOfItsChildren() {
        try (AnnotationConfigApplicationContext core = child(null, Core.class)) {
            core.refresh();
            runner.withParent(core)
                    .run(context -> assertThat(context.getStartupFailure())
                            .rootCause()
                            .isInstanceOfSatisfying(InvalidLockException.class, e -> {
                                assertThat(e)
                                        .hasMessageContaining("Method 'tick' of " + Core.class.getName())
                                        .hasMessageContaining(
                                                "is in a parent context that has no auto-configuration of pglock");
                                assertThat(e.action()).contains("@EnableAutoConfiguration", "in this one");
                            }));
        }
        try (AnnotationConfigApplicationContext core = child(null, Elsewhere.class)) {
            core.refresh();
            runner.withParent(core).run(context -> assertThat(context).hasNotFailed());
        }
        runner.withBean(Core.class)
                .run(core -> runner.withParent(core)
                        .run(context -> assertThat(context).hasNotFailed()));
    }

    /** Runs on every replica. */
    static class Elsewhere {

        @Scheduled(cron = "-")
        @EveryReplica
        public void everywhere() {}
    }

    static class SharedLock {

        @Scheduled(fixedDelay = 1000)
        @RunOnce("shared")
        public void often() {}

        @Scheduled(fixedDelayString = "PT1M")
        @RunOnce("shared")
        public void seldom() {}

        @Scheduled(cron = "-")
        @RunOnce("other")
        public void one() {}

        @Scheduled(fixedRate = 1000)
        @RunOnce("other")
        public void two() {}
    }

    @Test
    void aDelayThatAnotherMethodOfTheSameLockRestartsIsAWarning(CapturedOutput output) {
        runner.withBean(SharedLock.class)
                .run(context -> assertThat(output)
                        .contains("have one lock, 'shared', and a fixedDelay")
                        .doesNotContain("have one lock, 'other'"));
    }

    @Test
    void oneLineSaysWhatIsLockedUnderWhichNameAndHowAndWhatIsNotAndWhy(CapturedOutput output) {
        runner.withBean(Jobs.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("on one replica at a time: Jobs.locked, Jobs.named as 'named' by lease; "
                                + "on every replica: Jobs.everywhere (@EveryReplica)"));
    }

    // ---- auto-configured beans

    /** Looks after itself on every replica, as a library's cache does. */
    static class Refresher {

        @Scheduled(cron = "-")
        public void refresh() {}
    }

    static class Imported extends Refresher {}

    static class OfAStaticMethod extends Refresher {}

    @Configuration(proxyBeanMethods = false)
    @Import(Imported.class)
    static class LibraryConfiguration {

        @Bean
        Refresher refresher() {
            return new Refresher();
        }

        @Bean
        static OfAStaticMethod ofAStaticMethod() {
            return new OfAStaticMethod();
        }
    }

    @AutoConfiguration
    @Import(LibraryConfiguration.class)
    static class Library {}

    @Test
    void whatAnAutoConfigurationImportsIsNotTheApplications(CapturedOutput output) {
        runner.withConfiguration(AutoConfigurations.of(Library.class))
                .withBean(Jobs.class)
                .run(context -> assertThat(output)
                        .contains("on one replica at a time: Jobs.locked, Jobs.named as 'named' by lease; "
                                + "on every replica: Imported.refresh (auto-configured), "
                                + "Jobs.everywhere (@EveryReplica), OfAStaticMethod.refresh (auto-configured), "
                                + "Refresher.refresh (auto-configured)"));
    }

    @Configuration(proxyBeanMethods = false)
    @Import(LibraryConfiguration.class)
    static class ImportsTheSame {}

    @Test
    void whatTheApplicationImportsTooIsItsOwn(CapturedOutput output) {
        runner.withConfiguration(AutoConfigurations.of(Library.class))
                .withUserConfiguration(ImportsTheSame.class)
                .run(context -> assertThat(output)
                        .contains("on one replica at a time: Imported.refresh, OfAStaticMethod.refresh, "
                                + "Refresher.refresh;"));
    }

    @Test
    void aClassBelowThePackageOfSpringIsVerifiedAsAnyOther(CapturedOutput output) {
        runner.withBean(SampleJob.class)
                .run(context -> assertThat(output).contains("on one replica at a time: SampleJob.tick;"));
    }

    // ---- configuration

    static class Annotated {

        @Scheduled(cron = "-")
        @RunOnce("report")
        public void generate() {}

        @Scheduled(cron = "-")
        public void plain() {}
    }

    @Test
    void anEntryForEveryReplicaThatAnAnnotationOverridesIsAWarning(CapturedOutput output) {
        runner.withBean(Annotated.class)
                .withPropertyValues("pglock.scheduled.every-replica=Annotated.generate,Annotated.plain")
                .run(context -> assertThat(output)
                        .contains(
                                "pglock.scheduled.every-replica has 'Annotated.generate', but that method has @RunOnce or"
                                        + " @Singleton too and stays locked")
                        .doesNotContain("every-replica has 'Annotated.plain'")
                        .contains("on one replica at a time: Annotated.generate as 'report'; "
                                + "on every replica: Annotated.plain (configuration)"));
    }
}
