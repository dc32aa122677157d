package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockRegistry;
import java.util.Arrays;
import java.util.List;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.boot.health.autoconfigure.contributor.HealthContributorAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Micrometer and the Actuator are there or not; locks are there in any case. */
class OptionalModulesTests {

    private static final String METRICS = "pgLockMetrics";
    private static final String OBSERVER = "pgLockObservedLocks";
    private static final String HEALTH = "pglockHealthIndicator";
    private static final String ENDPOINT = "pgLockEndpoint";

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(ours()))
            .withPropertyValues(
                    "pglock.strategy=local",
                    "spring.application.name=orders",
                    "management.endpoints.web.exposure.include=pglock");

    private static Class<?>[] ours() {
        return StreamSupport.stream(
                        ImportCandidates.load(
                                        org.springframework.boot.autoconfigure.AutoConfiguration.class,
                                        OptionalModulesTests.class.getClassLoader())
                                .spliterator(),
                        false)
                .filter(name -> name.startsWith("dev.pglock."))
                .map(OptionalModulesTests::load)
                .toArray(Class<?>[]::new);
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    private ApplicationContextRunner withMicrometer(ApplicationContextRunner before) {
        return before.withConfiguration(AutoConfigurations.of(
                MetricsAutoConfiguration.class,
                CompositeMeterRegistryAutoConfiguration.class,
                SimpleMetricsExportAutoConfiguration.class,
                ObservationAutoConfiguration.class));
    }

    private ApplicationContextRunner withActuator(ApplicationContextRunner before) {
        return before.withConfiguration(
                AutoConfigurations.of(EndpointAutoConfiguration.class, HealthContributorAutoConfiguration.class));
    }

    private static void locks(AssertableApplicationContext context) {
        assertThat(context).hasNotFailed();
        assertThat(context.getBean(LockRegistry.class).runOnce("job", () -> {})).isTrue();
    }

    @Test
    void withBothThereIsEverything() {
        withActuator(withMicrometer(runner)).run(context -> {
            locks(context);
            assertThat(context)
                    .hasBean(METRICS)
                    .hasBean(OBSERVER)
                    .hasBean(HEALTH)
                    .hasBean(ENDPOINT);
        });
    }

    @Test
    void withoutMicrometerThereAreNoMeters() {
        withActuator(runner)
                .withClassLoader(new FilteredClassLoader("io.micrometer"))
                .run(context -> {
                    locks(context);
                    assertThat(context)
                            .doesNotHaveBean(METRICS)
                            .doesNotHaveBean(OBSERVER)
                            .hasBean(HEALTH)
                            .hasBean(ENDPOINT);
                });
    }

    @Test
    void withoutTheActuatorThereAreNeitherEndpointNorHealth() {
        withMicrometer(runner)
                .withClassLoader(
                        new FilteredClassLoader("org.springframework.boot.actuate", "org.springframework.boot.health"))
                .run(context -> {
                    locks(context);
                    assertThat(context)
                            .hasBean(METRICS)
                            .hasBean(OBSERVER)
                            .doesNotHaveBean(HEALTH)
                            .doesNotHaveBean(ENDPOINT);
                });
    }

    @Test
    void withoutEitherThereAreLocks() {
        runner.withClassLoader(new FilteredClassLoader(
                        "io.micrometer", "org.springframework.boot.actuate", "org.springframework.boot.health"))
                .run(context -> {
                    locks(context);
                    assertThat(List.of(METRICS, OBSERVER, HEALTH, ENDPOINT))
                            .noneMatch(Arrays.asList(context.getBeanDefinitionNames())::contains);
                });
    }

    @Test
    void theEndpointIsNotExposedUnlessItIsAskedFor() {
        withActuator(runner)
                .withPropertyValues("management.endpoints.web.exposure.include=health")
                .run(context -> assertThat(context).doesNotHaveBean(ENDPOINT));
    }

    @Test
    void eachCanBeSwitchedOff() {
        withActuator(runner)
                .withPropertyValues("management.health.pglock.enabled=false", "management.endpoint.pglock.access=none")
                .run(context -> assertThat(context).doesNotHaveBean(HEALTH).doesNotHaveBean(ENDPOINT));
    }
}
