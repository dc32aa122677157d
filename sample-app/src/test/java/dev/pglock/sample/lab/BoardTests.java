package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.sample.lab.Run.State;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What is shown is what was, also of replicas that cannot tell it. */
class BoardTests {

    private static final String JOB = "ledger.close";

    private final Board board = new Board();

    private final long start = this.board.now();

    @Test
    void aFrozenReplicaHasLostItsLockAtTheEndOfItsLease() {
        take("A", 1, this.start);
        read("HELD", "A", 1, this.start, this.start + 4000);

        read("EXPIRED", "A", 1, this.start, this.start + 4000);

        assertThat(run(1)).extracting(Run::state, Run::lostAt).containsExactly(State.LOST, this.start + 4000);
        assertThat(events("LOST")).hasSize(1);
    }

    @Test
    void theEndOfALeaseIsKnownAlsoWhenAnotherWasQuickerThanTheLook() {
        take("A", 1, this.start);
        read("HELD", "A", 1, this.start, this.start - 500);

        read("HELD", "B", 2, this.start - 400, this.start + 3600);

        assertThat(run(1)).extracting(Run::state, Run::lostAt).containsExactly(State.LOST, this.start - 500);
    }

    @Test
    void itIsNotLaterThanTheTakeOver() {
        take("A", 1, this.start);

        read("HELD", "B", 2, this.start + 100, this.start + 4100);

        assertThat(run(1)).extracting(Run::state, Run::lostAt).containsExactly(State.LOST, this.start + 100);
    }

    @Test
    void aReplicaThatWasFrozenBetweenItsReleaseAndItsWordsHasLostNothing() {
        take("A", 1, this.start);

        read("FREE", null, 1, this.start, null);
        read("HELD", "B", 2, this.start + 100, this.start + 4100);

        assertThat(run(1).state()).isEqualTo(State.DONE);
        assertThat(events("LOST")).isEmpty();
    }

    @Test
    void whatIsToldLateIsShownWhenItWas() {
        take("A", 1, this.start);

        this.board.told(
                "A",
                Map.of("kind", "RELEASE", "lock", JOB, "fence", 1, "told", this.start + 70, "outcome", "SUCCEEDED"));

        assertThat(run(1)).extracting(Run::state, Run::end).containsExactly(State.DONE, this.start + 70);
        assertThat(events("RELEASE")).extracting(LabEvent::at).containsExactly(this.start + 70);
    }

    @Test
    void whatAReplicaRanDiesWithIt() {
        take("A", 1, this.start);

        this.board.ended("A", false);
        read("HELD", "A", 1, this.start, this.start + 4000);

        assertThat(run(1)).extracting(Run::state, Run::leaseEnd).containsExactly(State.DIED, this.start + 4000);
        assertThat(events("DIED")).extracting(LabEvent::fence).containsExactly(1L);
    }

    @Test
    void aLockThatIsThereNoMoreIsShownNoMore() {
        read("HELD", "A", 1, this.start, this.start + 4000);

        this.board.read(List.of(), "A"::equals);

        assertThat(this.board.whole().locks()).isEmpty();
    }

    private void take(String replica, long fence, long at) {
        this.board.told(replica, Map.of("kind", "TAKE", "lock", JOB, "fence", fence, "strategy", "LEASE", "at", at));
    }

    /** As the watch reads it, while A is frozen. */
    private void read(String state, @Nullable String holder, long fence, long since, @Nullable Long until) {
        LockView row = new LockView(
                JOB, "LEASE", state, holder, fence, since, until, null, null, null, null, null, List.of(), null,
                List.of());
        this.board.read(List.of(row), "A"::equals);
    }

    private Run run(long fence) {
        return this.board.runsOf(JOB).stream()
                .filter(run -> run.fence() == fence)
                .findFirst()
                .orElseThrow();
    }

    private List<LabEvent> events(String kind) {
        return this.board.eventsAfter(0).stream()
                .filter(event -> event.kind().equals(kind))
                .toList();
    }
}
