package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Whose interrupt is whose. */
class ExecutionTests {

    private final Execution execution = new Execution();

    @AfterEach
    void clear() {
        boolean ignored = Thread.interrupted();
    }

    private void begin() {
        assertThat(execution.begin()).isEqualTo(Execution.State.NOT_BEGUN);
    }

    @Test
    void anInterruptOfOursThatTheBodyDidNotConsumeIsTakenBack() {
        begin();
        assertThat(execution.lose()).isTrue();
        execution.end(null);

        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void whoEndsByOurInterruptIsLeftTheOneThatSomebodyElseSentMeanwhile() {
        begin();
        assertThat(execution.lose()).isTrue();
        assertThat(Thread.interrupted()).as("consumed by the body").isTrue();
        Thread.currentThread().interrupt();
        execution.end(new InterruptedException());

        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void aBodyIsInterruptedOnceHoweverOftenThatIsAskedFor() {
        assertThat(execution.lose()).as("before it has begun").isFalse();
        begin();
        assertThat(execution.lose()).isTrue();
        assertThat(Thread.interrupted()).as("consumed by the body").isTrue();
        assertThat(execution.lose()).isFalse();
        assertThat(Thread.interrupted()).isFalse();
        execution.end(null);

        assertThat(execution.lose()).as("after its end").isFalse();
        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void whoWasAskedToEndAndWentOnIsInterruptedAgainAtTheLoss() {
        begin();
        assertThat(execution.askToEnd()).isTrue();
        assertThat(Thread.interrupted()).as("swallowed by the body").isTrue();
        assertThat(execution.askToEnd()).as("asked once").isFalse();
        assertThat(Thread.interrupted()).isFalse();

        assertThat(execution.lose()).isTrue();
        assertThat(Thread.interrupted()).isTrue();
        assertThat(execution.askToEnd())
                .as("there is nothing left to give back")
                .isFalse();
        assertThat(Thread.interrupted()).isFalse();
        execution.end(null);
    }

    @Test
    void whoEndsByTheFirstOfOurTwoInterruptsIsNotLeftTheSecond() {
        begin();
        assertThat(execution.askToEnd()).isTrue();
        assertThat(Thread.interrupted()).as("consumed by the body").isTrue();
        assertThat(execution.lose()).as("while it cleans up").isTrue();
        execution.end(new InterruptedException());

        assertThat(Thread.interrupted()).isFalse();
    }

    private static Execution.Cancellation counting(AtomicInteger cancelled, boolean endsTheWork) {
        return new Execution.Cancellation() {

            @Override
            public boolean endsTheWork() {
                return endsTheWork;
            }

            @Override
            public void cancel() {
                cancelled.incrementAndGet();
            }
        };
    }

    @Test
    void workThatWentOnElsewhereIsCancelledForEachOfTheTwo() {
        AtomicInteger cancelled = new AtomicInteger();
        begin();
        execution.leaveThread(counting(cancelled, true));
        assertThat(execution.askToEnd()).isTrue();
        assertThat(execution.lose()).isTrue();
        assertThat(execution.lose()).isFalse();

        assertThat(cancelled.get()).isEqualTo(2);
        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void workThatCancellingDoesNotEndIsCancelledWhenThereIsNoLockLeftToReleaseUnderIt() {
        AtomicInteger cancelled = new AtomicInteger();
        begin();
        assertThat(execution.askToEnd()).isTrue();
        execution.leaveThread(counting(cancelled, false));
        assertThat(execution.askToEnd()).isFalse();
        assertThat(cancelled.get()).isZero();

        assertThat(execution.lose()).isTrue();
        assertThat(cancelled.get()).isEqualTo(1);
        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void whoEndsItBeforeItHasBegunKeepsItFromBeginningAndNobodyEndsItTwice() {
        assertThat(execution.endUnbegun()).isEqualTo(Execution.State.NOT_BEGUN);

        assertThat(execution.begin()).isEqualTo(Execution.State.ENDED);
        assertThat(execution.endUnbegun()).isEqualTo(Execution.State.ENDED);
    }

    @Test
    void aBodyThatRunsIsEndedByNobodyElse() {
        begin();
        assertThat(execution.begin()).isEqualTo(Execution.State.RUNNING);
        assertThat(execution.endUnbegun()).isEqualTo(Execution.State.RUNNING);
        execution.end(null);

        assertThat(execution.endUnbegun()).isEqualTo(Execution.State.ENDED);
    }

    @Test
    void withoutOneOfOursNoneIsTouched() {
        begin();
        Thread.currentThread().interrupt();
        execution.end(null);

        assertThat(Thread.interrupted()).isTrue();
    }
}
