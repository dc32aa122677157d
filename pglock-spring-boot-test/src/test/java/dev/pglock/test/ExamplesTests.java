package dev.pglock.test;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The examples of the documentation are tests of this package. */
class ExamplesTests {

    private static final Pattern EXAMPLE = Pattern.compile("(?s)```java\n(@(?:PgLockTest|TwoReplicas).*?)```");

    @Test
    void theExamplesCompile() throws IOException {
        List<String> examples = EXAMPLE.matcher(Files.readString(Path.of("../docs/testing.md")))
                .results()
                .map((MatchResult found) -> words(found.group(1)))
                .toList();
        String sources;
        try (Stream<Path> files = Files.list(Path.of("src/test/java/dev/pglock/test"))) {
            sources = files.map(ExamplesTests::read).map(ExamplesTests::words).collect(Collectors.joining("\n"));
        }
        assertThat(examples)
                .hasSize(2)
                .allSatisfy(example -> assertThat(sources).contains(example));
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String words(String text) {
        return text.replaceAll("\\s+", " ").strip();
    }
}
