package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.sample.lab.Question.Answer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Every question of the lab is answered as its sentence says; ten times in a row with {@code -Dpglock.test.lab.times=10}. */
@Tag("long")
@Tag("thorough")
@Tag("lab")
@EnabledOnOs(
        value = {OS.LINUX, OS.MAC},
        disabledReason = "signals")
class LabQuestionsTests {

    private static final int TIMES = Integer.getInteger("pglock.test.lab.times", 1);

    @RegisterExtension
    static final SharedLab shared = new SharedLab();

    @TestFactory
    Stream<DynamicTest> everyQuestionIsAnsweredAsItsSentenceSays() {
        return IntStream.rangeClosed(1, TIMES)
                .boxed()
                .flatMap(round -> shared.get().questions().all().stream()
                        .map(question -> DynamicTest.dynamicTest(question.title() + " (" + round + ")", () -> {
                            shared.makeWhole();
                            Answer answer = shared.get().questions().answer(question.id());
                            System.out.printf("%d %s: %s%n", round, question.id(), answer.seen());
                            assertThat(answer.ok()).as(answer.seen()).isTrue();
                        })));
    }
}
