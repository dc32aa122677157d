package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.actuate.PgLockEndpoint;
import dev.pglock.testing.CapturedLog;
import java.security.Principal;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.actuate.autoconfigure.endpoint.PropertiesEndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.InvocationContext;
import org.springframework.boot.actuate.endpoint.OperationFilter;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.invoke.convert.ConversionServiceParameterValueMapper;
import org.springframework.boot.actuate.endpoint.web.EndpointMediaTypes;
import org.springframework.boot.actuate.endpoint.web.WebEndpointHttpMethod;
import org.springframework.boot.actuate.endpoint.web.WebOperation;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpointDiscoverer;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.availability.ApplicationAvailabilityAutoConfiguration;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.boot.health.actuate.endpoint.HealthEndpointGroups;
import org.springframework.boot.health.autoconfigure.actuate.endpoint.AvailabilityProbesAutoConfiguration;
import org.springframework.boot.health.autoconfigure.actuate.endpoint.HealthEndpointAutoConfiguration;
import org.springframework.boot.health.autoconfigure.application.AvailabilityHealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.contributor.HealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.registry.HealthContributorRegistryAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;

/** What Spring Boot's Actuator makes of the endpoint and of the health: who may do what, and who is told. */
class ActuatorTests {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            // As every application has it, for values such as read-only
            .withInitializer(
                    context -> context.getEnvironment().setConversionService(new ApplicationConversionService()))
            .withConfiguration(AutoConfigurations.of(
                    PgLockAutoConfiguration.class,
                    PgLockEndpointAutoConfiguration.class,
                    PgLockHealthContributorAutoConfiguration.class))
            .withPropertyValues("pglock.strategy=local", "spring.application.name=orders");

    private final ApplicationContextRunner exposed =
            runner.withPropertyValues("management.endpoints.web.exposure.include=pglock");

    /** As the Actuator finds them for the web. */
    private static List<WebOperation> operations(ApplicationContext context) {
        return new WebEndpointDiscoverer(
                        context,
                        new ConversionServiceParameterValueMapper(),
                        EndpointMediaTypes.DEFAULT,
                        List.of(),
                        List.of(),
                        List.of(),
                        List.of(),
                        List.of(OperationFilter.byAccess(
                                new PropertiesEndpointAccessResolver(context.getEnvironment()))))
                .getEndpoints().stream()
                        .flatMap(endpoint -> endpoint.getOperations().stream())
                        .toList();
    }

    @Test
    void theEndpointIsNotExposedByItself() {
        runner.run(context -> assertThat(context).doesNotHaveBean(PgLockEndpoint.class));
    }

    @ParameterizedTest
    @CsvSource({
        "management.endpoint.pglock.access=, GET GET",
        "management.endpoint.pglock.access=read-only, GET GET",
        "management.endpoint.pglock.access=unrestricted, DELETE GET GET POST",
    })
    void whatMayBeChangedIsSaidByTheAccessAndByDefaultItIsNothing(String property, String methods) {
        ApplicationContextRunner with = property.endsWith("=") ? exposed : exposed.withPropertyValues(property);
        with.run(context -> assertThat(operations(context).stream()
                        .map(operation ->
                                operation.getRequestPredicate().getHttpMethod().name())
                        .sorted())
                .containsExactly(methods.split(" ")));
    }

    @Test
    void withMaximumAccessReadOnlyNothingIsChangedWhateverTheEndpointSays() {
        exposed.withPropertyValues(
                        "management.endpoint.pglock.access=unrestricted",
                        "management.endpoints.access.max-permitted=read-only")
                .run(context -> assertThat(operations(context))
                        .extracting(operation -> operation.getRequestPredicate().getHttpMethod())
                        .containsOnly(WebEndpointHttpMethod.GET));
    }

    @Test
    void whatIsDoneIsInTheLogWithItsReasonAndWhoeverHasSignedIn() {
        exposed.withPropertyValues("management.endpoint.pglock.access=unrestricted")
                .run(context -> {
                    LockHandle lock = context.getBean(LockRegistry.class)
                            .tryAcquire(LockRequest.of("job"))
                            .orElseThrow();
                    try (CapturedLog log = CapturedLog.of("dev.pglock.engine")) {
                        for (String action : List.of("pause", "resume", "resign")) {
                            Object ignored = invoke(context, "POST", Map.of("action", action, "reason", "ticket 4711"));
                        }
                        Object ignored = invoke(context, "DELETE", Map.of("reason", "it hangs"));
                        assertThat(log.messages())
                                .satisfiesExactly(
                                        line -> assertThat(line)
                                                .startsWith("INFO Lock 'job' was paused")
                                                .endsWith("reason given: ticket 4711 (by alice)"),
                                        line -> assertThat(line)
                                                .startsWith("INFO Lock 'job' was resumed")
                                                .endsWith("reason given: ticket 4711 (by alice)"),
                                        line -> assertThat(line)
                                                .startsWith("INFO The holder of lock 'job' is asked to give it back")
                                                .endsWith("reason given: ticket 4711 (by alice)"),
                                        line -> assertThat(line)
                                                .startsWith("WARN Lock 'job' was released by force")
                                                .endsWith("reason given: it hangs (by alice)"));
                    }
                    lock.close();
                });
    }

    private static @Nullable Object invoke(ApplicationContext context, String method, Map<String, String> arguments) {
        Map<String, Object> all = new HashMap<>(arguments);
        all.put("name", new String[] {"job"});
        return operations(context).stream()
                .filter(operation ->
                        operation.getRequestPredicate().getHttpMethod().name().equals(method))
                .findFirst()
                .orElseThrow()
                .invoke(new InvocationContext(new Alice(), all));
    }

    private static final class Alice implements SecurityContext {

        @Override
        public Principal getPrincipal() {
            return () -> "alice";
        }

        @Override
        public boolean isUserInRole(String role) {
            return false;
        }
    }

    @Test
    void theHealthIsInNeitherTheLivenessNorTheReadinessGroup() {
        runner.withConfiguration(AutoConfigurations.of(
                        ApplicationAvailabilityAutoConfiguration.class,
                        AvailabilityHealthContributorAutoConfiguration.class,
                        AvailabilityProbesAutoConfiguration.class,
                        HealthContributorAutoConfiguration.class,
                        HealthContributorRegistryAutoConfiguration.class,
                        HealthEndpointAutoConfiguration.class))
                .withPropertyValues(
                        "management.endpoints.web.exposure.include=health",
                        "management.endpoint.health.probes.enabled=true")
                .run(context -> {
                    assertThat(context).hasBean("pglockHealthIndicator");
                    HealthEndpointGroups groups = context.getBean(HealthEndpointGroups.class);
                    assertThat(groups.getPrimary().isMember("pglock")).isTrue();
                    assertThat(groups.getNames()).containsExactlyInAnyOrder("liveness", "readiness");
                    assertThat(groups.getNames())
                            .allSatisfy(name -> assertThat(groups.get(name).isMember("pglock"))
                                    .isFalse());
                });
    }
}
