package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What the documentation lists is what there is. */
class DocumentationTests {

    private static final Pattern LOGGED =
            Pattern.compile("log\\.(warn|error)\\(\\s*((?:\"(?:[^\"\\\\]|\\\\.)*\"\\s*\\+?\\s*)+)");
    private static final Pattern LITERAL = Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*)\"");
    private static final Pattern MESSAGE = Pattern.compile("(?m)^\\| (WARN|ERROR) \\| `([^`]+)` \\|");

    /** To a page of this project, to a heading, or both. */
    private static final Pattern LINK = Pattern.compile("\\]\\((?!https?:)([^)#]*)(?:#([^)]*))?\\)");

    private record Message(String level, String text) {

        boolean isBegunBy(Message row) {
            return level.equals(row.level) && text.startsWith(row.text);
        }
    }

    private static String docs(String name) throws IOException {
        return Files.readString(Path.of("../docs", name));
    }

    @Test
    void theReadmeLeadsToEveryPageAndEveryLinkLeadsSomewhere() throws IOException {
        String readme = Files.readString(Path.of("../README.md"));
        List<Path> pages;
        try (Stream<Path> files = Files.list(Path.of("../docs"))) {
            pages = files.filter(file -> file.toString().endsWith(".md")).toList();
        }
        assertThat(pages)
                .hasSizeGreaterThan(10)
                .allSatisfy(page -> assertThat(readme).contains("](docs/" + page.getFileName()));
        for (Path page : Stream.concat(Stream.of(Path.of("../README.md")), pages.stream())
                .toList()) {
            Matcher link = LINK.matcher(Files.readString(page));
            while (link.find()) {
                Path target = link.group(1).isEmpty() ? page : page.resolveSibling(link.group(1));
                assertThat(target).as(link.group() + " in " + page).exists();
                if (link.group(2) != null) {
                    assertThat(anchors(target)).as(link.group() + " in " + page).contains(link.group(2));
                }
            }
        }
    }

    private static List<String> anchors(Path page) throws IOException {
        return Files.readAllLines(page).stream()
                .filter(line -> line.startsWith("#"))
                .map(line -> line.replaceFirst("#+ ", "")
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N}_ -]", "")
                        .replace(' ', '-'))
                .toList();
    }

    @Test
    void everyWarningAndErrorIsExplainedAndNoOther() throws IOException {
        List<Message> logged = logged();
        List<Message> rows = MESSAGE.matcher(docs("messages.md"))
                .results()
                .map(row -> new Message(row.group(1), row.group(2)))
                .toList();
        assertThat(logged).hasSizeGreaterThan(20);
        assertThat(logged)
                .allSatisfy(
                        message -> assertThat(rows).as("a row for " + message).anyMatch(message::isBegunBy));
        assertThat(rows)
                .allSatisfy(row -> assertThat(logged)
                        .as("a log statement for " + row)
                        .anyMatch(message -> message.isBegunBy(row)));
    }

    private static List<Message> logged() throws IOException {
        List<Message> all = new ArrayList<>();
        for (Path root : List.of(Path.of("../pglock-core/src/main/java"), Path.of("src/main/java"))) {
            try (Stream<Path> sources = Files.walk(root)) {
                for (Path source : sources.filter(path -> path.toString().endsWith(".java"))
                        .toList()) {
                    String text = Files.readString(source);
                    Matcher statement = LOGGED.matcher(text);
                    int literal = 0;
                    while (statement.find()) {
                        literal++;
                        String message = LITERAL.matcher(statement.group(2))
                                .results()
                                .map(part -> part.group(1))
                                .collect(Collectors.joining());
                        all.add(new Message(statement.group(1).toUpperCase(Locale.ROOT), message.replace("{}", "…")));
                    }
                    assertThat(Pattern.compile("log\\.(warn|error)\\(")
                                    .matcher(text)
                                    .results())
                            .as("each begins with its text in " + source)
                            .hasSize(literal);
                }
            }
        }
        return all;
    }

    @Test
    void everyPropertyIsInTheTablesAndNoOther() throws IOException {
        Set<String> documented = new TreeSet<>();
        Matcher row =
                Pattern.compile("(?m)^\\| (`[^|]+`) \\| ([^|]+) \\| [^|]+ \\|$").matcher(docs("configuration.md"));
        while (row.find()) {
            String first = null;
            for (String cell : row.group(1).replace("`", "").split(", ")) {
                first = first == null ? cell : first;
                String name = cell.startsWith(".") ? first.substring(0, first.lastIndexOf('.')) + cell : cell;
                documented.add(name.startsWith("management.") ? name : "pglock." + name);
            }
        }
        documented.removeIf(name -> name.startsWith("management.")
                || List.of("pglock.name", "pglock.auto-start").contains(name));
        Set<String> real = new TreeSet<>();
        for (Map<String, Object> property : properties()) {
            String name = (String) property.get("name");
            if (name.startsWith("pglock.")) {
                real.add(name);
            }
        }
        // Lists and maps have tables of their own, whose columns begin anew.
        real.removeAll(Set.of("pglock.locks", "pglock.leader"));
        assertThat(documented).isEqualTo(real);
    }

    @Test
    void theTablesHaveTheDefaultsOfTheMetadata() throws IOException {
        String docs = docs("configuration.md");
        for (Map<String, Object> property : properties()) {
            Object value = property.get("defaultValue");
            String name = ((String) property.get("name")).replaceFirst("^pglock\\.", "");
            if (value == null || value instanceof List<?> || name.startsWith("management.")) {
                continue;
            }
            assertThat(docs)
                    .as(name)
                    .containsPattern(
                            "(?m)^\\| `" + Pattern.quote(name) + "` \\| `" + Pattern.quote(value.toString()) + "`");
        }
    }

    private static List<Map<String, Object>> properties() throws IOException {
        Path classes;
        try {
            classes = Path.of(PgLockAutoConfiguration.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toURI());
        } catch (java.net.URISyntaxException e) {
            throw new IOException(e);
        }
        try (InputStream json = Files.newInputStream(classes.resolve("META-INF/spring-configuration-metadata.json"))) {
            return JsonPath.read(json, "$.properties");
        }
    }
}
