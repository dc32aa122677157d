package dev.pglock.engine;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Whose interrupt is whose. */
class ExecutionTests {

    private final Execution execution = new Execution();

    @AfterEach
    void clear() {
        boolean ignored = Thread.interrupted();
    }

    @Test
    void anInterruptOfOursThatTheBodyDidNotConsumeIsTakenBack() {
        assertThat(execution.begin()).isTrue();
        assertThat(execution.interrupt()).isTrue();
        execution.end(null);

        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void whoEndsByOurInterruptIsLeftTheOneThatSomebodyElseSentMeanwhile() {
        assertThat(execution.begin()).isTrue();
        assertThat(execution.interrupt()).isTrue();
        assertThat(Thread.interrupted()).as("consumed by the body").isTrue();
        Thread.currentThread().interrupt();
        execution.end(new InterruptedException());

        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void aBodyIsInterruptedOnceHoweverOftenThatIsAskedFor() {
        assertThat(execution.interrupt()).as("before it has begun").isFalse();
        assertThat(execution.begin()).isTrue();
        assertThat(execution.interrupt()).isTrue();
        assertThat(Thread.interrupted()).as("consumed by the body").isTrue();
        assertThat(execution.interrupt()).isFalse();
        assertThat(Thread.interrupted()).isFalse();
        execution.end(null);

        assertThat(execution.interrupt()).as("after its end").isFalse();
        assertThat(Thread.interrupted()).isFalse();
    }

    @Test
    void withoutOneOfOursNoneIsTouched() {
        assertThat(execution.begin()).isTrue();
        Thread.currentThread().interrupt();
        execution.end(null);

        assertThat(Thread.interrupted()).isTrue();
    }
}
