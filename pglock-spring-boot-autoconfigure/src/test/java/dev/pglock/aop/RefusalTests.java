package dev.pglock.aop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.IfHeld;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.annotation.Strategy;
import dev.pglock.local.LocalSpace;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;

/** What does not start, and what it says: bean, method and the way out. */
class RefusalTests {

    static Stream<Arguments> refused() {
        return Stream.of(
                Arguments.of(CreatedTooEarly.class, "created before proxies"),
                Arguments.of(ScheduledSingleton.class, "@EveryReplica"),
                Arguments.of(ScheduledFail.class, "ifHeld = FAIL"),
                Arguments.of(ScheduledWait.class, "version"),
                Arguments.of(ScheduledVersion.class, "version"),
                Arguments.of(WaitWithoutVersion.class, "no version"),
                Arguments.of(VersionWithoutName.class, "no name"),
                Arguments.of(Both.class, "@RunOnce and @Singleton"),
                Arguments.of(RunOnceEverywhere.class, "@RunOnce and @EveryReplica"),
                Arguments.of(PrimitiveCondition.class, "primitive 'long'"),
                Arguments.of(UnresolvedName.class, "Could not resolve placeholder 'nope'"),
                Arguments.of(BlankName.class, "blank"),
                Arguments.of(LongName.class, "at most 255"),
                Arguments.of(NulName.class, "NUL"),
                Arguments.of(BrokenTemplate.class, "name"),
                Arguments.of(ZeroLease.class, "leaseDuration"),
                Arguments.of(NegativeLease.class, "leaseDuration"),
                Arguments.of(TextLease.class, "'abc' is no duration"),
                Arguments.of(BareNumber.class, "has no unit"),
                Arguments.of(ShortLease.class, "shorter than 500 ms"),
                Arguments.of(WrongHold.class, "minHold"),
                Arguments.of(WrongMaxHold.class, "maxHold"),
                Arguments.of(WaitTimeoutOfASkip.class, "waitTimeout"),
                Arguments.of(BrokenCondition.class, "condition"),
                Arguments.of(Advisory.class, "leaseDuration"),
                Arguments.of(SameName.SameNameTwice.class, "Write the name"));
    }

    @ParameterizedTest
    @MethodSource("refused")
    void aMethodThatCannotBeLockedAsWrittenFailsTheStart(Class<?> configuration, String message) {
        Throwable failure = catchThrowable(
                () -> Replica.start("A", new LocalSpace(), configuration).close());
        assertThat(failure).isNotNull();
        Throwable root = NestedExceptionUtils.getMostSpecificCause(failure);
        InvalidLockException invalid = find(failure);
        assertThat(invalid).as("in %s", root).isNotNull();
        assertThat(invalid.getMessage() + " " + invalid.action()).contains(message);
        assertThat(invalid.getMessage()).contains("Method '").contains(RefusalTests.class.getName());
        assertThat(invalid.action()).isNotBlank();
    }

    private static InvalidLockException find(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof InvalidLockException invalid) {
                return invalid;
            }
        }
        return null;
    }

    @Test
    void aBeanWithoutOurAnnotationsIsNeverTouched() {
        try (Replica replica = Replica.start("A", new LocalSpace(), Unrelated.class)) {
            assertThat(replica.bean(Unrelated.class).getClass()).isSameAs(Unrelated.class);
        }
    }

    @Test
    void aScheduledMethodMayHaveAPrimitiveResultAndAnOptOutMayBeFinal() {
        try (Replica replica = Replica.start(
                "A", new LocalSpace(), Replica.DEFAULTS, Map.of(), PrimitiveScheduled.class, FinalOptOut.class)) {
            assertThat(replica.bean(PrimitiveScheduled.class).tick()).isEqualTo(3);
        }
    }

    @Component
    static final class Unrelated {}

    @Component
    static class PrimitiveScheduled {
        @Scheduled(cron = "-")
        public int tick() {
            return 3;
        }
    }

    @Component
    static class FinalOptOut {
        @Scheduled(cron = "-")
        @EveryReplica
        public final void tick() {}
    }

    @Component
    static class CreatedTooEarly implements BeanFactoryPostProcessor {

        @Override
        public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {
            ((BeanDefinitionRegistry) beans).registerBeanDefinition("early", new RootBeanDefinition(Early.class));
            beans.getBean("early");
        }
    }

    static class Early {
        @RunOnce
        public void run() {}
    }

    @Component
    static class ScheduledSingleton {
        @Scheduled(fixedDelay = 100)
        @Singleton
        public void tick() {}
    }

    @Component
    static class ScheduledFail {
        @Scheduled(fixedDelay = 100)
        @RunOnce(ifHeld = IfHeld.FAIL)
        public void tick() {}
    }

    @Component
    static class ScheduledWait {
        @Scheduled(fixedDelay = 100)
        @RunOnce(name = "x", version = "1", ifHeld = IfHeld.WAIT)
        public void tick() {}
    }

    @Component
    static class ScheduledVersion {
        @Scheduled(fixedDelay = 100)
        @RunOnce(name = "x", version = "1")
        public void tick() {}
    }

    @Component
    static class WaitWithoutVersion {
        @RunOnce(name = "x", ifHeld = IfHeld.WAIT)
        public void run() {}
    }

    @Component
    static class VersionWithoutName {
        @RunOnce(version = "1")
        public void run() {}
    }

    @Component
    static class Both {
        @RunOnce
        @Singleton
        public void run() {}
    }

    @Component
    static class RunOnceEverywhere {
        @RunOnce
        @EveryReplica
        public void run() {}
    }

    @Component
    static class PrimitiveCondition {
        @Singleton(condition = "#p0")
        public long run(boolean b) {
            return 1;
        }
    }

    @Component
    static class UnresolvedName {
        @RunOnce("${nope}")
        public void run() {}
    }

    @Component
    static class BlankName {
        @RunOnce(" ")
        public void run() {}
    }

    @Component
    static class LongName {
        @RunOnce(
                "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                        + "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                        + "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789")
        public void run() {}
    }

    @Component
    static class NulName {
        @RunOnce("a\0b")
        public void run() {}
    }

    @Component
    static class BrokenTemplate {
        @RunOnce("x-#{#id")
        public void run(long id) {}
    }

    @Component
    static class ZeroLease {
        @RunOnce(leaseDuration = "0s")
        public void run() {}
    }

    @Component
    static class NegativeLease {
        @RunOnce(leaseDuration = "-1s")
        public void run() {}
    }

    @Component
    static class TextLease {
        @RunOnce(leaseDuration = "abc")
        public void run() {}
    }

    @Component
    static class BareNumber {
        @Singleton(waitTimeout = "30")
        public void run() {}
    }

    @Component
    static class ShortLease {
        @RunOnce(leaseDuration = "400ms")
        public void run() {}
    }

    @Component
    static class WrongHold {
        @RunOnce(minHold = "0s")
        public void run() {}
    }

    @Component
    static class WrongMaxHold {
        @RunOnce(maxHold = "-PT1S")
        public void run() {}
    }

    @Component
    static class WaitTimeoutOfASkip {
        @RunOnce(waitTimeout = "1s")
        public Optional<String> run() {
            return Optional.empty();
        }
    }

    @Component
    static class BrokenCondition {
        @RunOnce(condition = "#p0 >")
        public void run(int number) {}
    }

    @Component
    static class Advisory {
        @RunOnce(strategy = Strategy.ADVISORY, leaseDuration = "5s")
        public void run() {}
    }

    @Component
    static class SameName {
        @RunOnce
        public void run() {}

        @Component
        static class SameNameTwice {
            @org.springframework.context.annotation.Bean
            SameName one() {
                return new SameName();
            }

            @org.springframework.context.annotation.Bean
            Other.SameName two() {
                return new Other.SameName();
            }
        }
    }

    static class Other {
        static class SameName {
            @RunOnce
            public void run() {}
        }
    }
}
