package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Strategy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.scheduling.annotation.Scheduled;

/**
 * An application with a scheduled job under a lease and one under an advisory lock, and what all replicas of this JVM did:
 * in memory, because the database is what fails.
 */
class BothStrategies extends TwoReplicas.Application {

    static final List<String> JOBS = List.of("by lease", "by advisory lock");

    /** Room for a scheduler that gets no processor. */
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private static final List<Run> RUNS = new CopyOnWriteArrayList<>();
    private static volatile Duration length = Duration.ZERO;

    /** One run of a job. */
    static final class Run {

        final String job;
        final String replica;
        final long begin = System.nanoTime();
        volatile @Nullable Long end;
        volatile boolean interrupted;

        Run(String job, String replica) {
            this.job = job;
            this.replica = replica;
        }

        boolean isRunning() {
            return end == null;
        }

        private boolean overlaps(Run other) {
            Long ended = end;
            return other != this
                    && other.job.equals(job)
                    && begin <= other.begin
                    && (ended == null || ended > other.begin);
        }
    }

    @Bean
    Jobs jobs(Environment environment) {
        return new Jobs(environment.getRequiredProperty("pglock.instance-id"));
    }

    static class Jobs {

        private final String replica;

        Jobs(String replica) {
            this.replica = replica;
        }

        @Scheduled(fixedDelay = 50)
        @RunOnce("by lease")
        void byLease() {
            run("by lease");
        }

        @Scheduled(fixedDelay = 50)
        @RunOnce(name = "by advisory lock", strategy = Strategy.ADVISORY)
        void byAdvisoryLock() {
            run("by advisory lock");
        }

        private void run(String job) {
            Run run = new Run(job, replica);
            RUNS.add(run);
            try {
                Thread.sleep(length.toMillis());
            } catch (InterruptedException e) {
                run.interrupted = true;
            } finally {
                run.end = System.nanoTime();
            }
        }
    }

    // ---- what tests ask

    /** Forgets what was, and lets every run take that long from now on. */
    static void beginWithRunsOf(Duration duration) {
        RUNS.clear();
        length = duration;
    }

    static List<Run> runs(Predicate<Run> which) {
        return RUNS.stream().filter(which).toList();
    }

    static List<Run> runs(String job, String replica) {
        return runs(run -> run.job.equals(job) && run.replica.equals(replica));
    }

    /** Waits until each job has been run that often since that moment. */
    static void awaitRuns(int count, long since) {
        for (String job : JOBS) {
            await().atMost(PATIENCE)
                    .until(() -> runs(run -> run.job.equals(job) && run.begin > since && !run.isRunning())
                                    .size()
                            >= count);
        }
    }

    static void assertNoOverlapSince(long since) {
        List<Run> all = runs(run -> run.begin > since);
        for (Run run : all) {
            assertThat(all.stream().filter(run::overlaps))
                    .as("runs at the same time as one of %s", run.job)
                    .isEmpty();
        }
    }
}
