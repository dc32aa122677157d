package dev.pglock.lease;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The name of the lease table.
 *
 * @param schema its schema as the server has it; null: whichever the search path gives
 * @param name its name as the server has it
 */
public record LeaseTable(@Nullable String schema, String name) {

    /** The default name. */
    public static final String DEFAULT_NAME = "pglock_lease";

    private static final int GREATEST_LENGTH = 63;
    private static final Pattern IDENTIFIER =
            Pattern.compile("\"(?<quoted>(?:[^\"\\x00]|\"\")+)\"|(?<plain>[\\p{L}_][\\p{L}\\p{N}_$]*)");

    /**
     * Reads a name as one would write it in SQL: {@code pglock_lease}, {@code locks.pglock_lease},
     * {@code "Locks"."Lease"}. What is not quoted is folded to lower case, as the server does.
     *
     * @param text the name
     * @return the table
     * @throws IllegalArgumentException if it is no such name
     */
    public static LeaseTable parse(String text) {
        List<String> parts = new ArrayList<>();
        Matcher matcher = IDENTIFIER.matcher(text);
        int at = 0;
        while (matcher.region(at, text.length()).lookingAt()) {
            String quoted = matcher.group("quoted");
            parts.add(
                    quoted != null
                            ? quoted.replace("\"\"", "\"")
                            : matcher.group("plain").toLowerCase(Locale.ROOT));
            at = matcher.end();
            if (at == text.length()) {
                return of(text, parts);
            }
            if (text.charAt(at) != '.') {
                break;
            }
            at++;
        }
        throw unusable(text, "it is no table name, with or without a schema in front");
    }

    private static LeaseTable of(String text, List<String> parts) {
        if (parts.size() > 2) {
            throw unusable(text, "it has more than a schema and a name");
        }
        for (String part : parts) {
            if (part.getBytes(StandardCharsets.UTF_8).length > GREATEST_LENGTH) {
                throw unusable(text, "the server would cut it after " + GREATEST_LENGTH + " bytes");
            }
        }
        return parts.size() == 1 ? new LeaseTable(null, parts.get(0)) : new LeaseTable(parts.get(0), parts.get(1));
    }

    private static IllegalArgumentException unusable(String text, String why) {
        return new IllegalArgumentException("pglock.lease.table cannot be '" + text + "': " + why);
    }

    boolean isQualified() {
        return schema != null;
    }

    /**
     * The name to be put into a statement.
     *
     * @return with its schema if that is known, quoted
     */
    public String sql() {
        return schema == null ? quote(name) : quote(schema) + "." + quote(name);
    }

    /** The schema to be put into a statement, or a placeholder for people. */
    String schemaSql() {
        return schema == null ? "the_schema" : quote(schema);
    }

    /**
     * Puts this name into a statement that is written for the default one.
     *
     * @param statement the statement
     * @return the statement for this table
     */
    public String in(String statement) {
        return statement.replace(DEFAULT_NAME, sql());
    }

    private static String quote(String identifier) {
        return '"' + identifier.replace("\"", "\"\"") + '"';
    }

    @Override
    public String toString() {
        return sql();
    }
}
