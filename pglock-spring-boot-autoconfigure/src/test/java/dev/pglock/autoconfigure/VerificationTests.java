package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.annotation.EveryReplica;
import dev.pglock.annotation.RunOnce;
import dev.pglock.aop.InvalidLockException;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.context.event.EventListener;
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

    @Test
    void oneLineSaysWhatIsLockedUnderWhichNameAndHowAndWhatIsNotAndWhy(CapturedOutput output) {
        runner.withBean(Jobs.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("on one replica at a time: Jobs.locked, Jobs.named as 'named' by lease; "
                                + "on every replica: Jobs.everywhere (@EveryReplica)"));
    }
}
