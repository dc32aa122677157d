package dev.pglock.testing;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Faults that come and go at random: a plan that follows from a seed alone, so that a run can be repeated. The seed is that of
 * {@code -Dpglock.test.seed}, or a new one; a run that fails says it.
 *
 * <pre>{@code
 * Faults faults = Faults.random()
 *         .add("black hole", proxy::stall, proxy::resume)
 *         .add("all connections end", proxy::cut);
 * faults.strike(Duration.ofSeconds(20));
 * faults.explain(() -> assertThat(…));
 * }</pre>
 */
public final class Faults {

    /** The system property. */
    public static final String SEED = "pglock.test.seed";

    /** Something that is done to a system under test, or undone. */
    @FunctionalInterface
    public interface Action {
        void run() throws Exception;
    }

    /** One fault: what begins it, and what ends it. */
    private record Fault(String name, Action begin, Action end) {}

    /** When it begins or ends, from the beginning of the run. */
    private record Step(long atMillis, Fault fault, boolean begins) {}

    private static final Action NOTHING = () -> {};
    private static final int LONGEST_PAUSE_MILLIS = 1500;
    private static final int SHORTEST_MILLIS = 100;

    private final long seed;
    private final List<Fault> faults = new ArrayList<>();
    private int longestMillis = 4000;

    private Faults(long seed) {
        this.seed = seed;
    }

    /** With the seed of the command line, or a new one. */
    public static Faults random() {
        Long given = Long.getLong(SEED);
        return seeded(given == null ? new Random().nextInt(1_000_000) : given);
    }

    /** With that seed. */
    public static Faults seeded(long seed) {
        return new Faults(seed);
    }

    public long seed() {
        return seed;
    }

    /** How long one may last at most; 4 s if nothing is said. */
    public Faults lastingAtMost(Duration longest) {
        longestMillis = Math.toIntExact(longest.toMillis());
        return this;
    }

    /** One that lasts for a while. */
    public Faults add(String name, Action begin, Action end) {
        faults.add(new Fault(name, begin, end));
        return this;
    }

    /** One that is over at once. */
    public Faults add(String name, Action strike) {
        return add(name, strike, NOTHING);
    }

    /**
     * Lets them happen, now and then two at the same time, for that long. Returns when the last one has been undone.
     *
     * @return how many there were
     */
    public int strike(Duration duration) throws Exception {
        List<Step> plan = plan(duration);
        long began = System.nanoTime();
        System.out.printf("Faults for %d s, -D%s=%d%n", duration.toSeconds(), SEED, seed);
        for (Step step : plan) {
            TimeUnit.NANOSECONDS.sleep(began + TimeUnit.MILLISECONDS.toNanos(step.atMillis()) - System.nanoTime());
            Action action = step.begins() ? step.fault().begin() : step.fault().end();
            if (action != NOTHING) {
                System.out.printf(
                        "%6.2f s: %s %s%n",
                        (System.nanoTime() - began) / 1e9, step.fault().name(), step.begins() ? "begins" : "ends");
                action.run();
            }
        }
        return plan.size() / 2;
    }

    /** Lets a check that fails say the seed. */
    public void explain(Action check) throws Exception {
        try {
            check.run();
        } catch (AssertionError e) {
            throw new AssertionError("With -D" + SEED + "=" + seed + ": " + e.getMessage(), e);
        }
    }

    /** No fault is planned again before it has ended. */
    private List<Step> plan(Duration duration) {
        Random random = new Random(seed);
        List<Step> steps = new ArrayList<>();
        long[] busyUntil = new long[faults.size()];
        long now = random.nextInt(LONGEST_PAUSE_MILLIS);
        while (now < duration.toMillis()) {
            int which = random.nextInt(faults.size());
            long lasts = SHORTEST_MILLIS + random.nextInt(longestMillis);
            long pause = random.nextInt(LONGEST_PAUSE_MILLIS);
            boolean overlapsNext = random.nextInt(3) == 0;
            if (busyUntil[which] <= now) {
                Fault fault = faults.get(which);
                long end = fault.end() == NOTHING ? now : now + lasts;
                steps.add(new Step(now, fault, true));
                steps.add(new Step(end, fault, false));
                busyUntil[which] = end + 1;
                now = overlapsNext ? now : end;
            }
            now += pause;
        }
        steps.sort(Comparator.comparingLong(Step::atMillis));
        return steps;
    }
}
