package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import dev.pglock.LockInfo;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Strategy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** The strategies as applications choose them, alone and one beside the other. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("long")
class StrategiesTests extends TwoReplicas {

    private static final String ADVISORY = "pglock.strategy=advisory";

    @Test
    void advisoryLocksNeedNoTableAndMakeNone(CapturedOutput output) {
        ConfigurableApplicationContext a = start("a", Ticking.class, ADVISORY);
        start("b", Ticking.class, ADVISORY);
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 20);
        assertThat(database.isTrue("SELECT to_regclass('pglock_lease') IS NULL"))
                .isTrue();
        a.close();
        long before = database.number("SELECT count(*) FROM runs WHERE replica = 'b'");
        await().atMost(Duration.ofSeconds(10))
                .until(() -> database.number("SELECT count(*) FROM runs WHERE replica = 'b'") > before + 5);
        assertThat(overlaps("tick")).isZero();
        assertThat(output).contains("Locks by advisory keys on one session");
    }

    @Test
    void withoutATableLocksAreLookedAtAndForcedAllTheSame() {
        LockRegistry registry = start("a", Ticking.class, ADVISORY).getBean(LockRegistry.class);
        assertThat(registry.find("never seen")).isEmpty();
        assertThat(registry.forceRelease("never seen", "none", true)).isFalse();
        try (LockHandle lock = registry.tryAcquire(LockRequest.of("n")).orElseThrow()) {
            assertThat(registry.find("n").orElseThrow().fence()).isEqualTo(lock.fence());
            assertThat(registry.findAll()).extracting(LockInfo::name).contains("n");
        }
    }

    @Test
    void aStrategyIsChangedInARollingDeployWithoutADoubleRun() {
        ConfigurableApplicationContext old = start("old", Ticking.class);
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 5);
        start("new", Ticking.class, ADVISORY);
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 40);
        old.close();
        long before = runs("tick");
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= before + 10);
        assertThat(overlaps("tick")).isZero();
    }

    @Test
    void oneLockMayHaveAnotherStrategyThanTheRest() {
        ConfigurableApplicationContext a =
                start("a", Ticking.class, "pglock.locks[0].name=TickingJob.tick", "pglock.locks[0].strategy=advisory");
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 3);
        LockRegistry registry = a.getBean(LockRegistry.class);
        try (LockHandle lease = registry.tryAcquire(LockRequest.of("other")).orElseThrow();
                LockHandle advisory = registry.tryAcquire(
                                LockRequest.of("third").strategy(LockStrategy.ADVISORY))
                        .orElseThrow()) {
            assertThat(lease.strategy()).isEqualTo(LockStrategy.LEASE);
            assertThat(advisory.strategy()).isEqualTo(LockStrategy.ADVISORY);
        }
        // The row remembers when the last run ended, and was never a lease.
        assertThat(database.number("SELECT count(*) FROM pglock_lease WHERE name = 'TickingJob.tick'"
                        + " AND (holder IS NOT NULL OR expires_at > last_finished_at + interval '1 second')"))
                .isZero();
    }

    @Test
    void aTickWhoseLockIsRefusedIsToldOnce(CapturedOutput output) {
        ConfigurableApplicationContext a = start("a", Ticking.class, ADVISORY, "pglock.advisory.max-locks=6");
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") >= 3);
        assertThat(output).doesNotContain("Ticks of");
        LockRegistry registry = a.getBean(LockRegistry.class);
        List<LockHandle> others = new ArrayList<>();
        // What ticks need for a moment may keep one of them waiting.
        await().atMost(Duration.ofSeconds(20)).ignoreExceptions().until(() -> {
            others.add(registry.acquire(LockRequest.of("other " + others.size())));
            return others.size() == 5;
        });
        await().atMost(Duration.ofSeconds(20)).until(() -> output.toString().contains("Ticks of"));
        others.forEach(LockHandle::close);
        long before = runs("tick");
        await().atMost(Duration.ofSeconds(20)).until(() -> runs("tick") > before + 3);
        assertThat(output.toString().lines().filter(line -> line.contains("Ticks of")))
                .singleElement()
                .asString()
                .contains("WARN", "TickingJob.tick", "max-locks");
    }

    @Test
    void anAnnotationThatAsksForTheLeaseHasItsTable() {
        ConfigurableApplicationContext a = start("a", ByLease.class, ADVISORY);
        assertThat(database.isTrue("SELECT to_regclass('pglock_lease') IS NOT NULL"))
                .isTrue();
        assertThat(a.getBean(ByLease.class).report()).contains(LockStrategy.LEASE);
    }

    @Test
    void whereNoTableIsToBeCreatedAnAnnotationThatAsksForTheLeaseFailsTheStart() {
        assertThatThrownBy(() -> start("a", ByLease.class, ADVISORY, "pglock.lease.initialize-schema=validate"))
                .satisfies(
                        failure -> assertThat(Analyses.of(failure).getAction()).contains("CREATE TABLE"));
    }

    @Test
    void anAnnotationThatAsksForAdvisoryLocksFailsTheStartWhereConnectionsAreBorrowed() {
        assertThatThrownBy(() -> start("a", ByAdvisory.class, "pglock.datasource.shared=true"))
                .satisfies(
                        failure -> assertThat(Analyses.of(failure).getAction()).contains("pglock.datasource.url"));
    }

    @Test
    void anAnnotationAndAnEntryThatDoNotGoTogetherFailTheStart() {
        assertThatThrownBy(() ->
                        start("a", ByLease.class, "pglock.locks[0].name=report", "pglock.locks[0].strategy=advisory"))
                .satisfies(failure -> {
                    assertThat(Analyses.of(failure).getDescription()).contains("report", "lease duration");
                    assertThat(Analyses.of(failure).getAction()).contains("'pglock.locks'");
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class ByLease extends Application {

        @RunOnce(name = "report", strategy = Strategy.LEASE, leaseDuration = "5s")
        public Optional<LockStrategy> report() {
            return Optional.of(LockContext.current().strategy());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ByAdvisory extends Application {

        @RunOnce(name = "report", strategy = Strategy.ADVISORY)
        public void report() {}
    }
}
