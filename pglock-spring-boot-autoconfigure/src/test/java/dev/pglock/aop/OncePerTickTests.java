package dev.pglock.aop;

import dev.pglock.LockStrategy;
import dev.pglock.annotation.RunOnce;
import dev.pglock.engine.EngineSettings;
import dev.pglock.engine.LockEngine;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.ReplicaStores;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Replicas on PostgreSQL with clocks apart, in all strategies side by side, for sixty ticks. What is counted is the whole
 * cluster's runs.
 */
@Tag("long")
class OncePerTickTests {

    private static final Duration LENGTH = Duration.ofSeconds(60);
    private static final Duration PERIOD = Duration.ofMillis(300);
    private static final long MILLI = 1_000_000L;

    /** By cluster. Static, because schedulers create the beans. */
    private static final Map<String, Journal> journals = new ConcurrentHashMap<>();

    private final ReplicaStores tables = ReplicaStores.withTable();
    private final ReplicaStores bare = ReplicaStores.withoutTable();
    private final List<Replica> replicas = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        replicas.parallelStream().forEach(Replica::close);
        tables.close();
        bare.close();
        journals.clear();
    }

    private enum Way {
        LEASE,
        ADVISORY,
        ADVISORY_WITHOUT_TABLE
    }

    @Test
    void eachTickRunsOnceWhateverTheClocksAndHoweverLongTheJob() throws Exception {
        long[] skews = {0, 1300, 180_000};
        for (Way way : Way.values()) {
            for (long skew : skews) {
                start(way, way + " " + skew, 0, Map.of(), Jobs.class);
                start(way, way + " " + skew, skew, Map.of(), Jobs.class);
            }
        }

        Watch watch = Watch.over(LENGTH, tables.database());

        SoftAssertions softly = new SoftAssertions();
        journals.forEach((cluster, journal) -> {
            for (int length : new int[] {0, 50}) {
                watch.assertRuns(
                        softly, journal.of("cron" + length), Duration.ofSeconds(1), cluster + " cron" + length);
                watch.assertRuns(softly, journal.of("rate" + length), PERIOD, cluster + " rate" + length);
                watch.assertDistance(softly, journal.of("delay" + length), PERIOD, cluster + " delay" + length);
            }
            watch.assertCovered(softly, journal.of("cronLong"), Duration.ofSeconds(1), cluster + " cronLong");
            watch.assertCovered(softly, journal.of("rateLong"), PERIOD, cluster + " rateLong");
            watch.assertDistance(softly, journal.of("delayLong"), PERIOD, cluster + " delayLong");
        });
        softly.assertAll();
    }

    @Test
    void tenReplicasInTenPhasesKeepTheRate() throws Exception {
        for (Way way : Way.values()) {
            for (int i = 0; i < 10; i++) {
                start(way, "phases " + way, 0, Map.of("phase", 1000 + i * 30), Phase.class);
            }
        }

        Watch watch = Watch.over(PERIOD.multipliedBy(60), tables.database());

        SoftAssertions softly = new SoftAssertions();
        journals.forEach((cluster, journal) -> watch.assertRuns(softly, journal.of("phase"), PERIOD, cluster));
        softly.assertAll();
    }

    private void start(Way way, String cluster, long skew, Map<String, Object> properties, Class<?> jobs) {
        String label = "replica " + replicas.size();
        StoreIdentity identity = StoreIdentity.random(cluster, label);
        LockStore store = switch (way) {
            case LEASE -> tables.lease(identity);
            case ADVISORY -> tables.store(identity);
            case ADVISORY_WITHOUT_TABLE -> bare.store(identity);
        };
        LockStrategy strategy = store.strategy();
        LockEngine engine = LockEngine.builder(EngineSettings.defaults(cluster, label, strategy)
                        .withLease(ReplicaStores.LEASE, Duration.ofMillis(600)))
                .store(store)
                .build();
        journals.computeIfAbsent(cluster, key -> new Journal());
        Map<String, Object> all = new HashMap<>(properties);
        all.put("cluster", cluster);
        all.put("skew", skew);
        replicas.add(Replica.start(engine, Replica.DEFAULTS, all, jobs));
    }

    // ---- what ran

    private record Run(String job, long begun, long ended) {}

    private static final class Journal {

        private final List<Run> runs = new CopyOnWriteArrayList<>();

        void run(String job, long millis) {
            long begun = System.nanoTime();
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            runs.add(new Run(job, begun, System.nanoTime()));
        }

        List<Run> of(String job) {
            return runs.stream()
                    .filter(run -> run.job().equals(job))
                    .sorted(Comparator.comparingLong(Run::begun))
                    .toList();
        }
    }

    /** A stretch of time, how often the machine or its database stood still in it, and for how long in all. */
    private record Watch(long from, long until, long stalls, long stalled) {

        static Watch over(Duration length, TestDatabase database) throws Exception {
            Thread.sleep(2500);
            long stalls = 0;
            long stalled = 0;
            try (Connection connection = database.direct();
                    Statement commit = connection.createStatement()) {
                long from = System.nanoTime();
                long last = from;
                while (last - from < length.toNanos()) {
                    Thread.sleep(20);
                    commit.execute("SELECT pg_logical_emit_message(true, 'watch', '')");
                    long now = System.nanoTime();
                    if (now - last > 80 * MILLI) {
                        stalls++;
                        stalled += now - last;
                    }
                    last = now;
                }
                return new Watch(from, last, stalls, stalled);
            }
        }

        private List<Run> within(List<Run> all) {
            return all.stream()
                    .filter(run -> run.begun() >= from && run.begun() < until)
                    .toList();
        }

        /** Each stall may cost the tick that it falls on, and the next one, which another replica in its phase asks for too early. */
        private long allowed(Duration period) {
            return 1 + 2 * stalls + stalled / period.toNanos();
        }

        private void assertNoOverlap(SoftAssertions softly, List<Run> all, String what) {
            for (int i = 1; i < all.size(); i++) {
                softly.assertThat(all.get(i).begun())
                        .as("no overlap of " + what)
                        .isGreaterThanOrEqualTo(all.get(i - 1).ended());
            }
        }

        void assertRuns(SoftAssertions softly, List<Run> all, Duration period, String what) {
            assertNoOverlap(softly, all, what);
            long ticks = (until - from) / period.toNanos();
            softly.assertThat((long) within(all).size())
                    .as("runs of %s, with %d ms stalled", what, stalled / MILLI)
                    .isBetween(ticks - allowed(period), ticks + 1);
        }

        /** At each tick a run is under way, or begins. */
        void assertCovered(SoftAssertions softly, List<Run> all, Duration period, String what) {
            assertNoOverlap(softly, all, what);
            long missed = 0;
            List<Run> runs = within(all);
            for (int i = 1; i < runs.size(); i++) {
                long pause = runs.get(i).begun() - runs.get(i - 1).ended();
                missed += pause / (period.toNanos() + 100 * MILLI);
            }
            softly.assertThat(missed)
                    .as("ticks missed by %s, with %d ms stalled", what, stalled / MILLI)
                    .isLessThanOrEqualTo(allowed(period));
        }

        void assertDistance(SoftAssertions softly, List<Run> all, Duration delay, String what) {
            assertNoOverlap(softly, all, what);
            List<Run> runs = within(all);
            softly.assertThat(runs).as(what).hasSizeGreaterThan(10);
            long missed = 0;
            for (int i = 1; i < runs.size(); i++) {
                long pause = runs.get(i).begun() - runs.get(i - 1).ended();
                softly.assertThat(pause / MILLI)
                        .as("distance of " + what)
                        .isGreaterThanOrEqualTo(delay.toMillis() - 25);
                missed += pause / (2 * delay.toNanos());
            }
            softly.assertThat(missed)
                    .as("delays of %s that were too long, with %d ms stalled", what, stalled / MILLI)
                    .isLessThanOrEqualTo(allowed(delay));
        }
    }

    // ---- the jobs

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Skewed {

        @Bean
        static ThreadPoolTaskScheduler taskScheduler(@Value("${skew}") long skew) {
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.setPoolSize(9);
            scheduler.setClock(Clock.offset(Clock.systemDefaultZone(), Duration.ofMillis(skew)));
            return scheduler;
        }
    }

    @Import(Skewed.class)
    static class Jobs {

        @Value("${cluster}")
        String cluster;

        private void run(String job, long millis) {
            Journal journal = journals.get(cluster);
            if (journal != null) {
                journal.run(job, millis);
            }
        }

        @Scheduled(cron = "* * * * * *")
        void cron0() {
            run("cron0", 0);
        }

        @Scheduled(cron = "* * * * * *")
        void cron50() {
            run("cron50", 50);
        }

        @Scheduled(cron = "* * * * * *")
        void cronLong() {
            run("cronLong", 3000);
        }

        @Scheduled(fixedRate = 300)
        void rate0() {
            run("rate0", 0);
        }

        @Scheduled(fixedRate = 300)
        void rate50() {
            run("rate50", 50);
        }

        @Scheduled(fixedRate = 300)
        void rateLong() {
            run("rateLong", 900);
        }

        @Scheduled(fixedDelay = 300)
        void delay0() {
            run("delay0", 0);
        }

        @Scheduled(fixedDelay = 300)
        void delay50() {
            run("delay50", 50);
        }

        @Scheduled(fixedDelay = 300)
        void delayLong() {
            run("delayLong", 900);
        }
    }

    @Import(Skewed.class)
    static class Phase {

        @Value("${cluster}")
        String cluster;

        @Scheduled(fixedRate = 300, initialDelayString = "${phase}")
        @RunOnce("phase")
        void tick() {
            Journal journal = journals.get(cluster);
            if (journal != null) {
                journal.run("phase", 0);
            }
        }
    }
}
