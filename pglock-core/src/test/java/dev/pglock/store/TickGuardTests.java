package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.Tick;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TickGuardTests {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");

    /** A server whose clock stands. */
    private static ServerClock serverAt(Instant now) {
        ServerClock clock = new ServerClock();
        clock.learn(System.nanoTime(), now, System.nanoTime());
        return clock;
    }

    private static Tick.FireTimes dailyAt(LocalTime time, ZoneId zone) {
        return after -> {
            LocalDate day = after.atZone(zone).toLocalDate();
            Instant today = day.atTime(time).atZone(zone).toInstant();
            return today.isAfter(after)
                    ? today
                    : day.plusDays(1).atTime(time).atZone(zone).toInstant();
        };
    }

    private static TickGuard guard(Tick.FireTimes times, Instant fireTime, Instant replicaNow, Instant serverNow) {
        Clock clock = Clock.fixed(replicaNow, ZoneOffset.UTC);
        return TickGuard.of(new Tick.Calendar("daily", fireTime, clock, times), serverAt(serverNow));
    }

    @ParameterizedTest
    @CsvSource({
        // the day before, of and after the clocks go forward, and back
        "2026-03-28T02:00:00Z, PT23H",
        "2026-03-29T01:00:00Z, PT24H",
        "2026-10-24T01:00:00Z, PT25H",
        "2026-10-25T02:00:00Z, PT24H"
    })
    void aDayIsAsLongAsItsZoneSays(Instant threeInTheMorning, Duration untilTheNext) {
        Tick.FireTimes times = dailyAt(LocalTime.of(3, 0), BERLIN);

        for (long skew : new long[] {0, 180, -180, 3600 * 5}) {
            Instant due = threeInTheMorning;
            // The replica's clock is ahead: what it takes for three o'clock is earlier on the server.
            TickGuard guard =
                    guard(times, due, due.plusMillis(5), due.plusMillis(5).minusSeconds(skew));

            assertThat(guard.tick()).as("skew " + skew).isEqualTo(due);
            assertThat(guard.slack()).isEqualTo(untilTheNext);
        }
    }

    @Test
    void ofTwoFireTimesTheNearerOneOnTheServersClockCounts() {
        Tick.FireTimes everySecond = after -> Instant.ofEpochSecond(after.getEpochSecond() + 1);
        Instant due = Instant.parse("2026-12-02T12:03:00Z");

        assertThat(guard(
                                everySecond,
                                due,
                                due.plusMillis(3),
                                due.minusSeconds(180).plusMillis(3))
                        .tick())
                .isEqualTo(due.minusSeconds(180));
        assertThat(guard(everySecond, due, due.plusMillis(3), due.plusMillis(3 + 400))
                        .tick())
                .isEqualTo(due);
        assertThat(guard(everySecond, due, due.plusMillis(3), due.plusMillis(3 + 600))
                        .tick())
                .isEqualTo(due.plusSeconds(1));
    }

    @Test
    void aLateCallStillMeansTheTickThatItWasDueFor() {
        Tick.FireTimes everySecond = after -> Instant.ofEpochSecond(after.getEpochSecond() + 1);
        Instant due = Instant.parse("2026-12-02T12:00:00Z");

        assertThat(guard(everySecond, due, due.plusSeconds(9), due.plusSeconds(9))
                        .tick())
                .isEqualTo(due);
    }

    @Test
    void aCalendarMayBegin() {
        Instant only = Instant.parse("2026-12-02T12:00:00Z");
        Tick.FireTimes once = after -> after.isBefore(only) ? only : null;

        for (Duration skew : new Duration[] {Duration.ofDays(-3), Duration.ZERO, Duration.ofDays(3)}) {
            assertThat(guard(once, only, only, only.plus(skew)).tick()).isEqualTo(only);
        }
    }

    @Test
    void aRateStaysInItsPhaseUntilItIsAWholePeriodLate() {
        Duration period = Duration.ofSeconds(10);
        TickGuard guard = TickGuard.of(new Tick.Rate("rate", period), new ServerClock());
        Instant last = Instant.parse("2026-12-02T12:00:00Z");

        assertThat(guard.isDone(last, last.plusMillis(8900))).isTrue();
        assertThat(guard.isDone(last, last.plusMillis(9100))).isFalse();
        assertThat(guard.granted(last, last.plusMillis(9100))).isEqualTo(last.plus(period));
        assertThat(guard.granted(last, last.plusSeconds(19))).isEqualTo(last.plus(period));
        assertThat(guard.granted(last, last.plusSeconds(21))).isEqualTo(last.plusSeconds(21));
        assertThat(guard.isDone(last.plusSeconds(3600), last))
                .as("a clock that was set back")
                .isFalse();
    }

    @Test
    void theServersTimeIsKeptUntilAnAnswerProvesItWrong() {
        ServerClock clock = new ServerClock();
        Instant server = Instant.parse("2026-12-02T12:00:00Z");
        long now = System.nanoTime();
        assertThat(clock.now()).isNull();

        clock.learn(now, server, now);
        clock.learn(now - 1_000_000_000L, server, now + 1_000_000_000L);
        assertThat(Duration.between(server, clock.now())).isBetween(Duration.ZERO, Duration.ofSeconds(5));

        long later = System.nanoTime();
        clock.learn(later, server.plusSeconds(3600), later);
        assertThat(Duration.between(server, clock.now())).isBetween(Duration.ofSeconds(3600), Duration.ofSeconds(3605));
    }
}
