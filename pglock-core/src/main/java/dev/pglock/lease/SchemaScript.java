package dev.pglock.lease;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The DDL file of the jar: what is run, what is shown to a DBA, and what an existing table is compared with. */
final class SchemaScript {

    private static final String RESOURCE = "schema.sql";
    private static final Pattern COLUMN = Pattern.compile(
            "^ {2}(?<name>[a-z_]+) +(?<definition>(?<type>[a-z\\[\\]]+).*?), *(--.*)?$", Pattern.MULTILINE);

    private final String text;
    private final List<Column> columns = new ArrayList<>();

    /**
     * A column of the table.
     *
     * @param definition as it stands in CREATE TABLE
     * @param type as {@code format_type} spells it
     */
    record Column(String name, String definition, String type) {}

    private SchemaScript(String text) {
        this.text = text;
        Matcher matcher = COLUMN.matcher(text);
        while (matcher.find()) {
            String type = matcher.group("type");
            columns.add(new Column(
                    matcher.group("name"),
                    matcher.group("definition"),
                    type.equals("timestamptz") ? "timestamp with time zone" : type));
        }
    }

    static SchemaScript load() {
        try (InputStream in = SchemaScript.class.getResourceAsStream(RESOURCE)) {
            byte[] bytes = Objects.requireNonNull(in, "schema.sql is missing from the jar")
                    .readAllBytes();
            return new SchemaScript(new String(bytes, StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    List<Column> columns() {
        return columns;
    }

    /** The statement for a table of that name, without the comment in front. */
    String ddl(LeaseTable table) {
        return table.in(text.substring(text.indexOf("CREATE TABLE"))).strip();
    }
}
