package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

import dev.pglock.LeaderElection;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.leader.LeaderElections;
import dev.pglock.leader.LeadershipGrantedEvent;
import dev.pglock.leader.LeadershipRevokedEvent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;

/** Roles of an application: how they are declared, what is published, and how a deploy hands them over. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class LeaderElectionsTests extends TwoReplicas {

    private static final String ROLE = "pglock.leader.billing.auto-start=true";
    private static final List<String> EVENTS = new CopyOnWriteArrayList<>();
    private static final List<Long> FENCES = new CopyOnWriteArrayList<>();

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(PgLockAutoConfiguration.class, PgLockLeaderAutoConfiguration.class));

    @BeforeEach
    void forget() {
        EVENTS.clear();
        FENCES.clear();
    }

    static class Listening extends Application {

        private final long revokedTakes;

        Listening(Environment environment) {
            revokedTakes = environment.getProperty("test.revoked-takes", Long.class, 0L);
        }

        @EventListener
        void granted(LeadershipGrantedEvent event) {
            EVENTS.add(event.instance() + " leads " + event.role());
            FENCES.add(event.fence());
        }

        @EventListener
        void revoked(LeadershipRevokedEvent event) throws InterruptedException {
            EVENTS.add(event.instance() + " ends " + event.role());
            Thread.sleep(revokedTakes);
            EVENTS.add(event.instance() + " has ended " + event.role());
        }
    }

    private static LeaderElection billing(ConfigurableApplicationContext context) {
        return context.getBean(LeaderElections.class).get("billing");
    }

    private static Duration until(LeaderElection election) {
        long began = System.nanoTime();
        await().atMost(Duration.ofSeconds(20))
                .pollInterval(Duration.ofMillis(2))
                .until(election::isLeader);
        return Duration.ofNanos(System.nanoTime() - began);
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory"})
    void aRollingDeployHandsARoleOverAndItsListenersEndFirst(String strategy, CapturedOutput output) {
        String with = "pglock.strategy=" + strategy;
        ConfigurableApplicationContext a = start("a", Listening.class, ROLE, with, "test.revoked-takes=300");
        until(billing(a));
        ConfigurableApplicationContext b = start("b", Listening.class, ROLE, with);
        a.close();
        assertThat(until(billing(b))).isLessThan(Duration.ofSeconds(2));
        await().untilAsserted(() -> assertThat(EVENTS)
                .containsExactly("a leads billing", "a ends billing", "a has ended billing", "b leads billing"));
        assertThat(FENCES).isSorted().doesNotHaveDuplicates();
        assertThat(output.getAll().lines().filter(line -> line.contains(" WARN ") || line.contains(" ERROR ")))
                .isEmpty();
    }

    @Test
    void theLifecycleStopsAndStartsElectionsAgain() {
        ConfigurableApplicationContext a = start("a", Listening.class, ROLE);
        ConfigurableApplicationContext b = start("b", Listening.class, ROLE);
        LeaderElection first = billing(a);
        LeaderElection second = billing(b);
        await().atMost(Duration.ofSeconds(10)).until(() -> first.isLeader() || second.isLeader());
        for (int i = 0; i < 3; i++) {
            ConfigurableApplicationContext leader = first.isLeader() ? a : b;
            leader.stop();
            assertThat(billing(leader).isRunning()).isFalse();
            until(leader == a ? second : first);
            leader.start();
            assertThat(billing(leader).isRunning()).isTrue();
        }
        await().untilAsserted(() -> assertThat(FENCES).isSorted().hasSize(4));
    }

    @Test
    void anElectionThatIsABeanIsStartedAndPublishesToo() {
        ConfigurableApplicationContext a = start("a", WithBean.class, ROLE);
        LeaderElections elections = a.getBean(LeaderElections.class);
        assertThat(elections.all()).extracting(LeaderElection::role).containsExactly("billing", "mail");
        until(elections.get("billing"));
        until(elections.get("mail"));
        assertThat(elections.get("mail")).isSameAs(a.getBean(LeaderElection.class));
        assertThat(a.getBean(LockRegistry.class).find("mail.leader")).isPresent();
        await().untilAsserted(() -> assertThat(EVENTS).containsExactlyInAnyOrder("a leads billing", "a leads mail"));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> elections.get("post"))
                .withMessageContaining("'post'")
                .withMessageContaining("[billing, mail]")
                .withMessageContaining("pglock.leader.post");
    }

    static class WithBean extends Listening {

        WithBean(Environment environment) {
            super(environment);
        }

        @Bean
        LeaderElection mail(LockRegistry registry) {
            return LeaderElection.of(registry, "mail", LockRequest.of("mail.leader"));
        }
    }

    static class Failing extends Listening {

        static volatile boolean fails = true;

        Failing(Environment environment) {
            super(environment);
        }

        @EventListener
        void fails(LeadershipGrantedEvent event) {
            if (fails && event.instance().equals("a")) {
                throw new IllegalStateException("not here");
            }
        }
    }

    @Test
    void aListenerThatThrowsGivesTheLeadershipUp(CapturedOutput output) {
        ConfigurableApplicationContext a = start("a", Failing.class, ROLE);
        await().atMost(Duration.ofSeconds(10)).until(() -> EVENTS.contains("a has ended billing"));
        until(billing(start("b", Failing.class, ROLE)));
        assertThat(billing(a).isLeader()).isFalse();
        assertThat(output).contains("the leadership is given up", "not here");
    }

    @Test
    void aRoleHasSettingsOfItsOwn() {
        ConfigurableApplicationContext a = start(
                "a",
                Listening.class,
                "pglock.leader.billing.name=billing.leader",
                "pglock.leader.billing.lease-duration=3s",
                "pglock.leader.mail.strategy=advisory",
                "pglock.leader.quiet.auto-start=false");
        LeaderElections elections = a.getBean(LeaderElections.class);
        until(elections.get("billing"));
        LockRegistry registry = a.getBean(LockRegistry.class);
        assertThat(database.isTrue("SELECT expires_at - clock_timestamp() > interval '2 s' FROM pglock_lease"
                        + " WHERE name = 'billing.leader'"))
                .isTrue();
        await().atMost(Duration.ofSeconds(5))
                .until(() -> registry.find("leader:mail").orElseThrow().strategy() == LockStrategy.ADVISORY);
        assertThat(elections.get("quiet").isRunning()).isFalse();
        elections.get("quiet").start();
        until(elections.get("quiet"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"pglock.strategy=local", "pglock.enabled=false"})
    void withoutADatabaseThisReplicaLeads(String without) {
        runner.withPropertyValues(without, "pglock.leader.billing.strategy=advisory")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    LeaderElection election =
                            context.getBean(LeaderElections.class).get("billing");
                    until(election);
                    assertThat(election.fence()).isPresent();
                });
    }

    @Test
    void withoutARoleNothingIsAskedFor() {
        runner.run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean(LeaderElections.class).all()).isEmpty();
            assertThat(context.getBeanFactory().containsSingleton("pgLockRegistry"))
                    .isFalse();
        });
    }

    @Test
    void aRoleMayHaveNoSettingsAtAll() {
        runner.withPropertyValues("pglock.strategy=local", "pglock.leader.billing=")
                .run(context -> until(context.getBean(LeaderElections.class).get("billing")));
    }

    @Test
    void anEntryForTheLockOfARoleIsUsed(CapturedOutput output) {
        start("a", Ticking.class, ROLE, "pglock.locks[0].name=leader:billing", "pglock.locks[0].lease-duration=4s");
        await().atMost(Duration.ofSeconds(10))
                .until(() -> database.isTrue("SELECT count(*) = 1 FROM pglock_lease WHERE name = 'leader:billing'"
                        + " AND expires_at - acquired_at >= interval '4 s'"));
        assertThat(output).doesNotContain("pglock.locks has an entry");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            pglock.leader.billing.lease-duration | 10ms       | between 500ms and 365d
            pglock.leader.billing.lease-duration | 30         | no unit
            pglock.leader.billing.strategy       | local      | exclude nobody on another replica
            pglock.leader.billing.strategy       | zookeeper  | LockStrategy
            pglock.leader.billing.name           | ${nope}    | placeholder without a value
            pglock.leader.billing.name           | ' '        | blank
            pglock.leader.billing.auto-start     | perhaps    | boolean
            pglock.leader.billing                | yes        | but no value
            pglock.leader.billing.stratgy        | lease      | do not exist
            pglock.leader.billing.name           | leader:one | has the same lock
            """)
    void anUnusableSettingIsRefusedWithItsName(String property, String value, String reason) {
        runner.withPropertyValues("pglock.leader.one.auto-start=true", property + "=" + value)
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis = Analyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription()).contains(property);
                    assertThat(analysis.getDescription() + analysis.getAction()).containsIgnoringCase(reason);
                });
    }

    @Test
    void aRolesLockHasRoomForWhatIsAddedToItsName() {
        String most = "ü".repeat(LeaderElection.MAX_NAME_LENGTH);
        runner.withPropertyValues("pglock.strategy=local", "pglock.leader.billing.name=" + most)
                .run(context -> until(context.getBean(LeaderElections.class).get("billing")));
        runner.withPropertyValues("pglock.strategy=local", "pglock.leader.billing.name=" + most + "x")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.leader.billing.name", "250 characters"));
    }

    @Test
    void aRoleMayHaveAnOddName() {
        runner.withPropertyValues("pglock.strategy=local", "pglock.leader[My Rôle / %s 'x'].auto-start=true")
                .run(context -> until(context.getBean(LeaderElections.class).get("My Rôle / %s 'x'")));
        for (String role : List.of("[My Rôle / %s 'x']", "mailOut", "mail_out", "[billing.eu]")) {
            String property = "pglock.leader" + (role.startsWith("[") ? "" : ".") + role + ".lease-duration=";
            runner.withPropertyValues("pglock.strategy=local", "pglock.leader.other.auto-start=false", property + "10s")
                    .run(context -> assertThat(context).hasNotFailed());
            runner.withPropertyValues("pglock.strategy=local", property + "10")
                    .run(context -> assertThat(
                                    Analyses.of(context.getStartupFailure()).getDescription())
                            .contains(".lease-duration", "no unit"));
        }
    }

    @Test
    void theModeOfALockIsNoneForARole() {
        runner.withPropertyValues(
                        "pglock.strategy=local",
                        "pglock.leader.billing.auto-start=true",
                        "pglock.locks[0].name=leader:billing",
                        "pglock.locks[0].mode=paused")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.locks[0].mode", "pglock.leader.billing.auto-start"));
    }

    @Test
    void anAdvisoryRoleHasNoLeaseOfItsOwn() {
        runner.withPropertyValues("pglock.leader.billing.strategy=advisory", "pglock.leader.billing.lease-duration=10s")
                .run(context -> assertThat(
                                Analyses.of(context.getStartupFailure()).getDescription())
                        .contains("pglock.leader.billing.lease-duration", "pglock.lease-duration"));
    }

    @Test
    void twoElectionsForOneRoleAreRefused() {
        runner.withUserConfiguration(WithBean.class)
                .withPropertyValues("pglock.strategy=local", "pglock.leader.mail.auto-start=true")
                .run(context -> assertThat(context.getStartupFailure())
                        .satisfies(failure ->
                                assertThat(Analyses.of(failure).getAction()).contains("pglock.leader.mail"))
                        .hasStackTraceContaining("two elections for the role 'mail'"));
    }

    /** A service of several replicas that are replaced one by one: never without a leader for long, never with two. */
    @Test
    void aRollOutOfManyReplicasHandsOverEachTime() {
        List<ConfigurableApplicationContext> old = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            old.add(start("old-" + i, Listening.class, ROLE));
        }
        for (ConfigurableApplicationContext one : old) {
            start("new-" + old.indexOf(one), Listening.class, ROLE);
            one.close();
            await().atMost(Duration.ofSeconds(3))
                    .until(() -> replicas.stream()
                                    .filter(ConfigurableApplicationContext::isActive)
                                    .filter(replica -> billing(replica).isLeader())
                                    .count()
                            == 1);
        }
        assertThat(FENCES).isSorted().doesNotHaveDuplicates();
    }
}
