package dev.pglock.benchmarks;

import java.util.Arrays;
import java.util.Collection;

/** Numbers that were measured, and where they lie. */
final class Sample {

    private final double[] sorted;

    private Sample(double[] sorted) {
        this.sorted = sorted;
    }

    static Sample of(Collection<? extends Number> values) {
        double[] sorted = values.stream().mapToDouble(Number::doubleValue).toArray();
        Arrays.sort(sorted);
        return new Sample(sorted);
    }

    int size() {
        return sorted.length;
    }

    double percentile(double percent) {
        return sorted[(int) Math.min(sorted.length - 1L, Math.round(percent / 100 * (sorted.length - 1)))];
    }

    double median() {
        return percentile(50);
    }

    double least() {
        return sorted[0];
    }

    double greatest() {
        return sorted[sorted.length - 1];
    }

    /** Median and spread. */
    @Override
    public String toString() {
        return Table.number(median()) + " (" + Table.number(least()) + "–" + Table.number(greatest()) + ")";
    }
}
