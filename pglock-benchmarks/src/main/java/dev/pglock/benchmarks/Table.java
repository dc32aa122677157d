package dev.pglock.benchmarks;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A table in Markdown, its columns as wide as they need to be. */
final class Table {

    private final List<List<String>> rows = new ArrayList<>();

    Table(String... head) {
        rows.add(List.of(head));
    }

    Table row(List<String> cells) {
        rows.add(cells);
        return this;
    }

    Table row(String... cells) {
        return row(List.of(cells));
    }

    void print(String title, String explanation) {
        System.out.println("\n### " + title + "\n\n" + explanation + "\n\n" + this);
    }

    @Override
    public String toString() {
        int[] widths = IntStream.range(0, rows.get(0).size())
                .map(column -> rows.stream()
                        .mapToInt(row -> row.get(column).length())
                        .max()
                        .orElse(0))
                .toArray();
        String rule = Arrays.stream(widths)
                .mapToObj(width -> "-".repeat(width + 2))
                .collect(Collectors.joining("|", "|", "|\n"));
        StringBuilder text = new StringBuilder();
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                text.append("| ")
                        .append(row.get(i))
                        .append(" ".repeat(widths[i] - row.get(i).length() + 1));
            }
            text.append("|\n");
            if (text.indexOf(rule) < 0) {
                text.append(rule);
            }
        }
        return text.toString();
    }

    /** A number with about three digits that say something. */
    static String number(double value) {
        double magnitude = Math.abs(value);
        return String.format(Locale.ROOT, magnitude >= 100 ? "%,.0f" : magnitude >= 10 ? "%.1f" : "%.2f", value);
    }
}
