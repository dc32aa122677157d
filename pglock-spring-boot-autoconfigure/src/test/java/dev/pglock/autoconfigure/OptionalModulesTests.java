package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockRegistry;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurationImportSelector;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.AnnotationAttributes;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.util.ClassUtils;

/** Micrometer and the Actuator are there or not; locks are there in any case. */
class OptionalModulesTests {

    private static final String[] METERS = {"pgLockMetrics", "pgLockObservedLocks"};
    private static final String[] ACTUATOR = {"pglockHealthIndicator", "pgLockEndpoint"};

    private static final String MICROMETER_PACKAGE = "io.micrometer";
    private static final String ACTUATOR_PACKAGE = "org.springframework.boot.actuate";
    private static final String HEALTH_PACKAGE = "org.springframework.boot.health";

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withUserConfiguration(Application.class)
            .withPropertyValues(
                    "pglock.strategy=local",
                    "spring.application.name=orders",
                    "spring.flyway.enabled=false",
                    "management.endpoints.web.exposure.include=pglock");

    private static void has(AssertableApplicationContext context, String[] beans, boolean there) {
        assertThat(context).hasNotFailed();
        assertThat(context.getBean(LockRegistry.class).runOnce("job", () -> {})).isTrue();
        for (String bean : beans) {
            assertThat(context.containsBean(bean)).as(bean).isEqualTo(there);
        }
    }

    @Test
    void withBothThereIsEverything() {
        runner.run(context -> {
            has(context, METERS, true);
            has(context, ACTUATOR, true);
        });
    }

    @Test
    void withoutMicrometerThereAreNoMeters() {
        runner.withClassLoader(new FilteredClassLoader(MICROMETER_PACKAGE)).run(context -> {
            has(context, METERS, false);
            has(context, ACTUATOR, true);
        });
    }

    @Test
    void withoutTheActuatorThereAreNeitherEndpointNorHealth() {
        runner.withClassLoader(new FilteredClassLoader(ACTUATOR_PACKAGE, HEALTH_PACKAGE))
                .run(context -> {
                    has(context, METERS, true);
                    has(context, ACTUATOR, false);
                });
    }

    @Test
    void withoutEitherThereAreLocks() {
        runner.withClassLoader(new FilteredClassLoader(MICROMETER_PACKAGE, ACTUATOR_PACKAGE, HEALTH_PACKAGE))
                .run(context -> {
                    has(context, METERS, false);
                    has(context, ACTUATOR, false);
                });
    }

    @Test
    void theEndpointIsThereOnlyWhereItIsExposed() {
        runner.withPropertyValues("management.endpoints.web.exposure.include=health")
                .run(context -> assertThat(context).doesNotHaveBean("pgLockEndpoint"));
    }

    @Test
    void eachCanBeSwitchedOff() {
        runner.withPropertyValues("management.health.pglock.enabled=false", "management.endpoint.pglock.access=NONE")
                .run(context -> has(context, ACTUATOR, false));
    }

    @Configuration(proxyBeanMethods = false)
    @Import(AutoConfigurationsThatAreThere.class)
    static class Application {}

    /**
     * Auto-configuration as an application has it, which leaves out what is not there before it is looked at: a hidden
     * package's list of auto-configurations would otherwise still be found.
     */
    static class AutoConfigurationsThatAreThere extends AutoConfigurationImportSelector {

        @Override
        protected @Nullable AnnotationAttributes getAttributes(AnnotationMetadata metadata) {
            return null;
        }

        @Override
        protected Set<String> getExclusions(AnnotationMetadata metadata, @Nullable AnnotationAttributes attributes) {
            return Set.of();
        }

        @Override
        protected List<String> getCandidateConfigurations(
                AnnotationMetadata metadata, @Nullable AnnotationAttributes attributes) {
            return ImportCandidates.load(AutoConfiguration.class, getBeanClassLoader()).getCandidates().stream()
                    .filter(name ->
                            name.matches(".*([.](pglock|micrometer)[.].*|[.]HealthContributor.*|[.]EndpointAuto.*)"))
                    .filter(name -> ClassUtils.isPresent(name, getBeanClassLoader()))
                    .toList();
        }
    }
}
