package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.pglock.LockStrategy;
import dev.pglock.OnLost;
import dev.pglock.aop.LockMode;
import dev.pglock.aop.LockedMethodSettings;
import dev.pglock.aop.ScheduledMode;
import dev.pglock.aop.Verification;
import dev.pglock.engine.EngineSettings;
import dev.pglock.lease.SchemaMode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

@ExtendWith(OutputCaptureExtension.class)
class PgLockPropertiesTests {

    private final ApplicationContextRunner runner =
            new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(PgLockAutoConfiguration.class));

    @Test
    void theDefaultsAreThoseOfTheDocumentation() {
        runner.withPropertyValues("spring.application.name=orders", "pglock.instance-id=pod-1")
                .run(context -> {
                    PgLockSettings settings = context.getBean(PgLockSettings.class);
                    assertThat(settings.engine())
                            .isEqualTo(new EngineSettings(
                                    "orders",
                                    "pod-1",
                                    LockStrategy.LEASE,
                                    Duration.ofSeconds(30),
                                    null,
                                    Duration.ofSeconds(30),
                                    null,
                                    OnLost.INTERRUPT));
                    assertThat(context.getBean(LockedMethodSettings.class))
                            .isEqualTo(new LockedMethodSettings(
                                    ScheduledMode.ALL,
                                    List.of(),
                                    List.of(),
                                    true,
                                    Map.of(),
                                    Verification.FAIL,
                                    LockStrategy.LEASE,
                                    Duration.ofSeconds(30),
                                    null,
                                    null));
                    PgLockProperties properties = settings.properties();
                    assertThat(properties.enabled()).isTrue();
                    assertThat(properties.lease())
                            .isEqualTo(
                                    new PgLockProperties.Lease("pglock_lease", SchemaMode.ALWAYS, Duration.ofDays(7)));
                    assertThat(properties.datasource())
                            .isEqualTo(new PgLockProperties.Datasource(null, null, null, 2, false));
                });
    }

    @Test
    void everythingCanBeSet() {
        runner.withPropertyValues(
                        "pglock.strategy=local",
                        "pglock.namespace=jobs",
                        "pglock.lease-duration=PT10S",
                        "pglock.heartbeat-interval=2s",
                        "pglock.wait-timeout=0",
                        "pglock.max-hold=1h",
                        "pglock.on-lost=continue",
                        "pglock.verification=warn",
                        "pglock.aspect-order=17",
                        "pglock.scheduled.mode=annotated",
                        "pglock.scheduled.packages=com.example.jobs,com.example.mail",
                        "pglock.scheduled.every-replica=LocalCache.refresh",
                        "pglock.lease.table=jobs.\"Leases\"",
                        "pglock.lease.initialize-schema=validate",
                        "pglock.lease.retention=0",
                        "pglock.datasource.url=jdbc:postgresql://db/locks",
                        "pglock.datasource.username=locker",
                        "pglock.datasource.password=secret",
                        "pglock.datasource.pool-size=3",
                        "pglock.locks[0].name=orders.daily-rollup",
                        "pglock.locks[0].lease-duration=5m",
                        "pglock.locks[0].mode=every-replica",
                        "pglock.locks[1].name=mail",
                        "pglock.locks[1].mode=paused",
                        "pglock.locks[2].name=pile",
                        "pglock.locks[2].min-hold=20m",
                        "pglock.locks[2].strategy=local")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    LockedMethodSettings methods = context.getBean(LockedMethodSettings.class);
                    assertThat(methods.scheduled()).isEqualTo(ScheduledMode.ANNOTATED);
                    assertThat(methods.packages()).containsExactly("com.example.jobs", "com.example.mail");
                    assertThat(methods.everyReplica()).containsExactly("LocalCache.refresh");
                    assertThat(methods.modes())
                            .isEqualTo(Map.of("orders.daily-rollup", LockMode.EVERY_REPLICA, "mail", LockMode.PAUSED));
                    assertThat(methods.order()).isEqualTo(17);
                    EngineSettings engine =
                            context.getBean(PgLockSettings.class).engine();
                    assertThat(engine.heartbeatInterval()).isEqualTo(Duration.ofSeconds(2));
                    assertThat(engine.maxHold()).isEqualTo(Duration.ofHours(1));
                    assertThat(engine.onLost()).isEqualTo(OnLost.CONTINUE);
                });
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            pglock.lease-duration                | 0s        | between 500ms and 365d
            pglock.lease-duration                | -1s       | between 500ms and 365d
            pglock.lease-duration                | 499ms     | between 500ms and 365d
            pglock.lease-duration                | 366d      | between 500ms and 365d
            pglock.lease-duration                | 30        | no unit
            pglock.lease-duration                | 30000     | no unit
            pglock.leaseDuration                 | 1s 2      | Duration
            pglock.lease-duration                | abc       | Duration
            pglock.heartbeat-interval            | 0s        | positive
            pglock.heartbeat-interval            | -1s       | positive
            pglock.heartbeat-interval            | 1us       | at least 1 ms
            pglock.heartbeat-interval            | 10001ms   | three heartbeats must fit into 'pglock.lease-duration' (30s)
            pglock.heartbeat-interval            | 40000d    | at most 365d
            pglock.wait-timeout                  | -1s       | not be negative
            pglock.wait-timeout                  | 10        | no unit
            pglock.wait-timeout                  | 40000d    | at most 365d
            pglock.lease.retention               | 40000d    | at most 36500d
            pglock.max-hold                      | 400d      | at most 365d
            pglock.max-hold                      | 0s        | positive
            pglock.max-hold                      | -1s       | positive
            pglock.on-lost                       | explode   | OnLost
            pglock.strategy                      | zookeeper | LockStrategy
            pglock.advisory.max-locks            | 0         | at least 1
            pglock.namespace                     | ${nope}   | placeholder without a value
            pglock.advisory.key-derivation       | md5       | md5
            pglock.verification                  | maybe     | Verification
            pglock.aspect-order                  | outside   | Integer
            pglock.enabled                       | perhaps   | boolean
            pglock.instance-id                   | 'a\tb'    | control character
            pglock.scheduled.mode                | some      | ScheduledMode
            pglock.scheduled.packages            | com..x    | name of a package
            pglock.scheduled.every-replica       | 'a.b, '   | name of a method
            pglock.lease.table                   | ''        | no table name
            pglock.lease.table                   | a.b.c     | more than a schema and a name
            pglock.lease.table                   | a b       | no table name
            pglock.lease.table                   | 1a        | no table name
            pglock.lease.table                   | x;drop    | no table name
            pglock.lease.table                   | a."b      | no table name
            pglock.lease.table                   | a_name_that_has_more_characters_than_an_identifier_of_postgresql | after 63
            pglock.lease.initialize-schema       | embedded  | SchemaMode
            pglock.lease.retention               | -1d       | not be negative
            pglock.datasource.pool-size          | 0         | at least 1
            pglock.datasource.pool-size          | two       | int
            pglock.locks[0].lease-duration       | 10ms      | between 500ms and 365d
            pglock.locks[0].wait-timeout         | -1s       | not be negative
            pglock.locks[0].min-hold             | 0s        | positive
            pglock.locks[0].max-hold             | 10        | no unit
            pglock.locks[0].on-lost              | explode   | OnLost
            pglock.locks[0].strategy             | local     | exclude nobody on another replica
            pglock.locks[0].mode                 | stopped   | LockMode
            """)
    void anUnusableValueIsRefusedWithTheNameOfItsProperty(String property, String value, String reason) {
        ApplicationContextRunner with =
                property.startsWith("pglock.locks") ? runner.withPropertyValues("pglock.locks[0].name=x") : runner;
        with.withPropertyValues(property + "=" + value).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = Analyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains(property.replace("leaseDuration", "lease-duration"));
            assertThat(analysis.getDescription() + analysis.getAction()).containsIgnoringCase(reason);
        });
    }

    @Test
    void aLongNamespaceIsRefusedAndNotCut() {
        runner.withPropertyValues("pglock.namespace=" + "n".repeat(256))
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.namespace", "at most 255"));
        runner.withPropertyValues("spring.application.name=" + "n".repeat(256))
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("spring.application.name", "at most 255"));
        runner.withPropertyValues("pglock.namespace=" + "n".repeat(255))
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aBlankNamespaceIsRefused() {
        assertThatThrownBy(() -> PropertyChecks.namespace("pglock.namespace", "  "))
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .hasMessageContaining("pglock.namespace")
                .hasMessageContaining("not all blank");
    }

    @Test
    void theNamespaceIsEmptyOnlyIfThatIsWritten() {
        runner.run(context -> assertThat(context.getBean(PgLockSettings.class))
                .returns("application", PgLockSettings::namespace)
                .returns(true, PgLockSettings::isNamespaceGuessed));
        runner.withPropertyValues("pglock.namespace=")
                .run(context -> assertThat(context.getBean(PgLockSettings.class))
                        .returns("", PgLockSettings::namespace)
                        .returns(false, PgLockSettings::isNamespaceGuessed));
        runner.withPropertyValues("spring.application.name=orders", "pglock.namespace=")
                .run(context ->
                        assertThat(context.getBean(PgLockSettings.class)).returns("", PgLockSettings::namespace));
        runner.withPropertyValues("spring.application.name=orders")
                .run(context ->
                        assertThat(context.getBean(PgLockSettings.class)).returns("orders", PgLockSettings::namespace));
    }

    @Test
    void aReplicaHasAlwaysAName() {
        runner.withPropertyValues("pglock.instance-id=")
                .run(context -> assertThat(context.getBean(PgLockSettings.class).label())
                        .isNotBlank());
    }

    @Test
    void anUnknownKeyIsRefusedWithoutItsValue() {
        runner.withPropertyValues("pglock.datasource.pasword=hunter2", "pglock.lease-time=30s")
                .run(context -> {
                    FailureAnalysis analysis = Analyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("pglock.datasource.pasword", "pglock.lease-time", "do not exist")
                            .doesNotContain("hunter2");
                });
    }

    /** In a cluster a service of that name leaves variables in every container's environment. */
    @Test
    void aVariableOfTheEnvironmentMayBeMeantForSomebodyElse() {
        runner.withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .replace(
                                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                                new SystemEnvironmentPropertySource(
                                        StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                                        Map.of("PGLOCK_PORT", "tcp://10.0.0.7:80", "PGLOCK_LEASEDURATION", "7s"))))
                .run(context -> assertThat(
                                context.getBean(PgLockProperties.class).leaseDuration())
                        .isEqualTo(Duration.ofSeconds(7)));
    }

    @Test
    void twoEntriesForOneLockAreRefused() {
        runner.withPropertyValues("pglock.locks[0].name=caf\u00e9", "pglock.locks[1].name=cafe\u0301")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.locks[1].name", "'pglock.locks[0]' has the same name"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"pglock.locks[0].mode=paused", "pglock.locks[0].name="})
    void anEntryWithoutANameIsRefused(String property) {
        runner.withPropertyValues(property)
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.locks[0].name", "must not be empty"));
    }

    @Test
    void credentialsWithoutAUrlAreRefused() {
        runner.withPropertyValues("pglock.datasource.username=locker", "pglock.datasource.password=hunter2")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.datasource.url", "must be set when")
                        .doesNotContain("hunter2"));
    }

    @Test
    void connectionsOfOnesOwnCannotBeShared() {
        runner.withPropertyValues(
                        "pglock.datasource.url=jdbc:postgresql://db/x?password=hunter2",
                        "pglock.datasource.shared=true")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.datasource.shared", "pglock.datasource.url")
                        .doesNotContain("hunter2"));
    }

    @Test
    void thePropertiesNeverPrintASecret(CapturedOutput output) {
        runner.withPropertyValues(
                        "pglock.datasource.url=jdbc:postgresql://u:hunter3@db/x?password=hunter2",
                        "pglock.datasource.username=locker",
                        "pglock.datasource.password=hunter2")
                .run(context -> {
                    assertThat(context.getBean(PgLockSettings.class).toString())
                            .contains("poolSize=2")
                            .doesNotContain("hunter", "locker");
                    assertThat(output).doesNotContain("hunter");
                });
    }
}
