package dev.pglock.benchmarks;

import java.util.Collection;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** What the interceptor adds to a call, measured by JMH. */
final class Interceptor {

    /** A few microseconds are only seen when the compiler has finished, and a rare pause counts for little. */
    private static final int TIMES_A_ROUND = 4;

    private final Settings settings;

    Interceptor(Settings settings) {
        this.settings = settings;
    }

    void print() throws RunnerException {
        TimeValue iteration = TimeValue.milliseconds(settings.length().toMillis() * TIMES_A_ROUND);
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                        .include(InterceptorBenchmark.class.getSimpleName())
                        .measurementTime(iteration)
                        .warmupTime(iteration)
                        .verbosity(VerboseMode.SILENT)
                        .build())
                .run();
        Table table = new Table("call", "nanoseconds", "± (99.9 %)");
        for (RunResult result : results) {
            table.row(
                    result.getPrimaryResult().getLabel(),
                    Table.number(result.getPrimaryResult().getScore()),
                    Table.number(result.getPrimaryResult().getScoreError()));
        }
        table.print(
                "The interceptor",
                "`decidedLocally` is a call that another thread of the same replica keeps from running; `takenInMemory` one that"
                        + " takes a lock of the local strategy and gives it back.");
    }
}
