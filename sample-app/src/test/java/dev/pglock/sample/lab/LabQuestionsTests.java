package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.sample.lab.Question.Answer;
import java.time.Duration;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Every question of the lab is answered as its sentence says; ten times in a row with {@code -Dpglock.test.lab.times=10}. */
@Tag("long")
@EnabledOnOs(
        value = {OS.LINUX, OS.MAC},
        disabledReason = "signals")
class LabQuestionsTests {

    private static final int TIMES = Integer.getInteger("pglock.test.lab.times", 1);

    private static Lab lab;

    @BeforeAll
    static void open() throws Exception {
        lab = Lab.open("--lab.port=0");
        assertThat(lab.awaitReplicas(Duration.ofMinutes(2))).isTrue();
    }

    @AfterAll
    static void close() {
        if (lab != null) {
            lab.close();
        }
    }

    @TestFactory
    Stream<DynamicTest> everyQuestionIsAnsweredAsItsSentenceSays() {
        return IntStream.rangeClosed(1, TIMES)
                .boxed()
                .flatMap(round -> lab.questions().all().stream()
                        .map(question -> DynamicTest.dynamicTest(question.title() + " (" + round + ")", () -> {
                            Answer answer = lab.questions().answer(question.id());
                            System.out.printf("%d %s: %s%n", round, question.id(), answer.seen());
                            assertThat(answer.ok()).as(answer.seen()).isTrue();
                        })));
    }
}
