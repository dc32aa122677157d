package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.RunOutcome;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** The slice and its clock. */
@PgLockTest(properties = "shop.tested=true")
@Import(NightlyReport.class)
class PgLockTestTests {

    private static final Instant MIDNIGHT =
            LocalDate.of(2030, 6, 1).atStartOfDay(ZoneId.of("Europe/Berlin")).toInstant();

    @Autowired
    private NightlyReport job;

    @Autowired
    private TickDriver ticks;

    @Autowired
    private LockRegistry locks;

    @BeforeEach
    void startAtMidnight() {
        ticks.startAt(MIDNIGHT);
        job.reset();
    }

    @Test
    void aSliceHasLocksInMemoryAndNeitherADatabaseNorWhatWouldBeScanned(
            @Autowired ApplicationContext context, @Autowired Environment environment) {
        assertThat(context.getBeanProvider(DataSource.class).stream()).isEmpty();
        assertThat(context.getBeansOfType(Scanned.class)).isEmpty();
        assertThat(environment.getProperty("shop.tested")).isEqualTo("true");
        LockHandle lock = locks.tryAcquire(LockRequest.of("any")).orElseThrow();
        assertThat(lock.strategy()).isEqualTo(LockStrategy.LOCAL);
        lock.close();
    }

    @Test
    void ofEachTickTheFirstFiringRunsAndTheSecondIsSkipped() {
        assertThat(ticks.advanceTo(MIDNIGHT.plus(Duration.ofMinutes(179)))).isPositive();
        assertThat(job.reports()).isEqualTo(0);
        assertThatLock(locks, "report").wasNotRun();

        ticks.advance(Duration.ofMinutes(1));
        assertThat(job.reports()).isEqualTo(1);
        assertThatLock(locks, "report").wasRun(RunOutcome.SUCCEEDED);

        assertThat(ticks.fireAgain()).isEqualTo(2);
        assertThat(job.reports()).isEqualTo(1);

        for (int day = 0; day < 3; day++) {
            ticks.advance(Duration.ofDays(1));
            assertThat(ticks.fireAgain()).isEqualTo(3);
        }
        assertThat(job.reports()).isEqualTo(4);
    }

    @Test
    void aTickThatFindsTheLockTakenIsSkippedHoweverFarTheClockLeaps() {
        LockHandle other = locks.tryAcquire(LockRequest.of("report")).orElseThrow();
        ticks.advance(Duration.ofDays(1));
        assertThat(job.reports()).isEqualTo(0);
        assertThat(other.isHeld()).isTrue();
        other.close();
        ticks.advance(Duration.ofDays(1));
        assertThat(job.reports()).isEqualTo(1);
    }

    @Test
    void ratesAndDelaysHaveTheirTicksToo() {
        ticks.advance(Duration.ofMinutes(20));
        int polls = job.polls();
        // An initial delay counts from the real time at which the context started.
        assertThat(polls).isBetween(18, 20);
        assertThat(job.cleanings()).isEqualTo(1);

        assertThat(ticks.fireAgain()).isEqualTo(2);
        assertThat(job.polls()).isEqualTo(polls);
        assertThat(job.cleanings()).isEqualTo(1);

        ticks.advance(Duration.ofMinutes(1));
        assertThat(job.polls()).isEqualTo(polls + 1);
        ticks.advance(Duration.ofHours(1));
        assertThat(job.cleanings()).isEqualTo(2);
    }

    @Test
    void everythingThatIsDueIsFiredInItsOrderAndFailuresAreThrownAfterwards() {
        job.failFromNowOn(true);
        assertThatIllegalStateException()
                .isThrownBy(() -> ticks.advance(Duration.ofHours(5)))
                .withMessage("no paper");
        assertThat(ticks.now()).isEqualTo(MIDNIGHT.plus(Duration.ofHours(5)));
        assertThat(job.polls()).isBetween(298, 300);
        assertThatLock(locks, "report").wasRun(RunOutcome.FAILED);

        job.failFromNowOn(false);
        ticks.advance(Duration.ofDays(1));
        assertThat(job.reports()).isEqualTo(1);
    }

    @Test
    void theClockGoesForwardAndBeginsAnewAtAnyTime() {
        ticks.advance(Duration.ofDays(2));
        assertThat(job.reports()).isEqualTo(2);
        assertThatIllegalArgumentException().isThrownBy(() -> ticks.advanceTo(MIDNIGHT));

        ticks.startAt(MIDNIGHT);
        assertThatLock(locks, "report").wasNotRun();
        ticks.advance(Duration.ofDays(2));
        assertThat(job.reports()).isEqualTo(4);
    }

    @Test
    void aTaskCannotMoveTheClockAndACancelledOneIsNotFired() {
        AtomicInteger fired = new AtomicInteger();
        ScheduledFuture<?> cancelled = ticks.scheduleAtFixedRate(fired::incrementAndGet, Duration.ofMinutes(1));
        assertThat(ticks.advance(Duration.ZERO)).isOne();
        assertThat(fired).hasValue(1);
        cancelled.cancel(false);
        ticks.schedule(() -> ticks.advance(Duration.ZERO), ticks.now().plusSeconds(1));
        assertThatIllegalStateException().isThrownBy(() -> ticks.advance(Duration.ofMinutes(2)));
        ticks.advance(Duration.ofMinutes(2));
        assertThat(fired).hasValue(1);
    }
}
