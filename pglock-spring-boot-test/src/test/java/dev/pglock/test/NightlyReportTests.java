package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;
import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.RunOutcome;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.annotation.Import;

@PgLockTest
@Import(NightlyReport.class)
class NightlyReportTests {

    @Autowired
    NightlyReport job;

    @Autowired
    TickDriver ticks;

    @Autowired
    LockRegistry locks;

    @BeforeEach
    void startInTheEvening() {
        job.reset();
        ticks.startAt(Instant.parse("2030-05-31T22:00:00Z"));
    }

    @Test
    void eachNightHasOneReport() {
        ticks.advance(Duration.ofHours(3)); // it is 03:00 in Berlin
        ticks.fireAgain(); // the same ticks, on another replica's timer
        assertThat(job.reports()).isEqualTo(1);
        assertThatLock(locks, "report").wasRun(RunOutcome.SUCCEEDED);

        ticks.advance(Duration.ofDays(1));
        assertThat(job.reports()).isEqualTo(2);
    }

    @Test
    void thereIsNoSecondReportBesideOneThatRuns() {
        try (LockHandle another = locks.tryAcquire(LockRequest.of("report")).orElseThrow()) {
            ticks.advance(Duration.ofHours(3));
            assertThat(job.reports()).isEqualTo(0);
            assertThat(another.isHeld()).isTrue();
        }
    }
}
