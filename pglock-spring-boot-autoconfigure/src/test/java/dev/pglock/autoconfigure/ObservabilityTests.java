package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockNotAcquiredException;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.annotation.RunOnce;
import dev.pglock.annotation.Singleton;
import dev.pglock.observability.DefaultLockObservationConvention;
import dev.pglock.observability.LockObservation;
import dev.pglock.observability.LockObservationContext;
import dev.pglock.observability.LockObservationConvention;
import io.micrometer.common.KeyValue;
import io.micrometer.common.docs.KeyName;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.annotation.Scheduled;

/** What metrics and traces tell. */
@ExtendWith(OutputCaptureExtension.class)
class ObservabilityTests extends TwoReplicas {

    private static final Pattern ROW =
            Pattern.compile("(?m)^\\| `(pglock[a-z.]*)` \\| (?:timer|long task timer|counter|gauge) \\| ([^|]*) \\|");

    private static Map<String, String> described() throws Exception {
        return ROW.matcher(Files.readString(Path.of("../docs/metrics.md")))
                .results()
                .collect(Collectors.toMap(
                        row -> row.group(1),
                        row -> Pattern.compile("`([^`]+)`")
                                .matcher(row.group(2))
                                .results()
                                .map(found -> found.group(1))
                                .sorted()
                                .collect(Collectors.joining(" "))));
    }

    private static List<Meter> meters(MeterRegistry registry) {
        return registry.getMeters().stream()
                .filter(meter -> meter.getId().getName().startsWith("pglock"))
                .toList();
    }

    @Test
    void everyMeterIsDescribedWithItsTagsAndRegisteredOnce(CapturedOutput output) throws Exception {
        ConfigurableApplicationContext a = start("a", Work.class);
        MeterRegistry meters = a.getBean(MeterRegistry.class);
        Jobs jobs = a.getBean(Jobs.class);
        jobs.turn(1);
        LockRegistry locks = a.getBean(LockRegistry.class);
        LockHandle lock = locks.tryAcquire(LockRequest.of("lost")).orElseThrow();
        assertThat(locks.tryAcquire(LockRequest.of("lost"))).isEmpty();
        Thread waiting = new Thread(() -> {
            try {
                locks.acquire(LockRequest.of("lost")).close();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        waiting.start();
        assertThat(locks.forceRelease("lost", "the test says so", true)).isTrue();
        await().until(() -> !lock.isHeld());
        lock.close();
        waiting.join(5000);

        await().untilAsserted(() -> {
            Map<String, TreeSet<String>> registered = new TreeMap<>();
            for (Meter meter : meters(meters)) {
                TreeSet<String> keys = new TreeSet<>();
                meter.getId().getTags().forEach(tag -> keys.add(tag.getKey()));
                TreeSet<String> before = registered.put(meter.getId().getName(), keys);
                assertThat(before == null || before.equals(keys))
                        .as("one set of tags for " + meter.getId().getName())
                        .isTrue();
                assertThat(meter.getId().getName().startsWith("pglock.execution")
                                || meter.getId().getDescription() != null)
                        .isTrue();
            }
            Map<String, String> asDescribed = new TreeMap<>();
            registered.forEach((name, keys) -> asDescribed.put(name, String.join(" ", keys)));
            assertThat(asDescribed).isEqualTo(new TreeMap<>(described()));
        });
        assertThat(meters.get("pglock.hold")
                        .tags("lock", "lost", "outcome", "lost")
                        .timer()
                        .count())
                .isEqualTo(1);
        assertThat(meters.get("pglock.hold.active").longTaskTimers())
                .allSatisfy(timer -> assertThat(timer.activeTasks()).isZero());
        assertThat(output).doesNotContain("already registered");
    }

    @Test
    void aSkippedTickIsCountedAndHasNoSpan() {
        ConfigurableApplicationContext a = start("a", Work.class);
        LockHandle lock = a.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of("skipped"))
                .orElseThrow();
        assertThat(a.getBean(Jobs.class).skipped()).isNull();
        lock.close();
        Timer held = a.getBean(MeterRegistry.class)
                .get("pglock.acquire")
                .tags("lock", "skipped", "strategy", "lease", "outcome", "held")
                .timer();
        assertThat(held.count()).isEqualTo(1);
        assertThat(a.getBean(Spans.class).ended).isEmpty();
    }

    @Test
    void aDirectCallOfAScheduledMethodThatRunsElsewhereTellsItsCallerAndIsCounted() {
        ConfigurableApplicationContext a = start("a", Seldom.class);
        ConfigurableApplicationContext b = start("b", Seldom.class);
        LockHandle running = a.getBean(LockRegistry.class)
                .tryAcquire(LockRequest.of("Yearly.report"))
                .orElseThrow();

        assertThatExceptionOfType(LockNotAcquiredException.class)
                .isThrownBy(() -> b.getBean(Yearly.class).report())
                .withMessageContaining("'a'");

        running.close();
        assertThat(b.getBean(Yearly.class).reports()).isZero();
        assertThat(b.getBean(MeterRegistry.class)
                        .get("pglock.acquire")
                        .tags("lock", "Yearly.report", "strategy", "lease", "outcome", "held")
                        .timer()
                        .count())
                .isEqualTo(1);
    }

    static class Seldom extends Application {

        @Bean
        Yearly yearly() {
            return new Yearly();
        }
    }

    static class Yearly {

        private final AtomicInteger reports = new AtomicInteger();

        int reports() {
            return reports.get();
        }

        @Scheduled(cron = "0 0 0 1 1 *")
        void report() {
            int ignored = reports.incrementAndGet();
        }
    }

    @Test
    void aGrantedExecutionIsObservedWithTheDocumentedKeys() throws Exception {
        ConfigurableApplicationContext a = start("a", Work.class);
        a.getBean(Jobs.class).turn(7);
        LockObservationContext span = a.getBean(Spans.class).ended.get(0);
        assertThat(span.getName()).isEqualTo("pglock.execution");
        assertThat(span.getContextualName()).isEqualTo("lock turn-#{#id}");
        assertThat(keys(span.getLowCardinalityKeyValues()))
                .isEqualTo(names(LockObservation.EXECUTION.getLowCardinalityKeyNames()));
        assertThat(keys(span.getHighCardinalityKeyValues()))
                .isEqualTo(names(LockObservation.EXECUTION.getHighCardinalityKeyNames()));
        assertThat(span.getLowCardinalityKeyValue("lock").getValue()).isEqualTo("turn-#{#id}");
        assertThat(span.getLowCardinalityKeyValue("outcome").getValue()).isEqualTo("succeeded");
        assertThat(span.getHighCardinalityKeyValue("pglock.name").getValue()).isEqualTo("turn-7");
        String docs = Files.readString(Path.of("../docs/metrics.md"));
        assertThat(keys(span.getHighCardinalityKeyValues())).allMatch(key -> docs.contains("`" + key + "`"));
    }

    @Test
    void aBeanNamesObservationsOtherwise() throws Exception {
        ConfigurableApplicationContext a = start("a", Renamed.class);
        a.getBean(Jobs.class).turn(7);
        assertThat(a.getBean(Spans.class).ended)
                .singleElement()
                .satisfies(span -> assertThat(span.getName()).isEqualTo("our.locks"));
    }

    /** With a database, but by the strategy that keeps no rows: what is measured is this process. */
    @Test
    void tenThousandEvaluatedNamesLeaveNeitherMetersNorMemory() throws Exception {
        ConfigurableApplicationContext a = start("a", Work.class, "pglock.strategy=advisory");
        Jobs jobs = a.getBean(Jobs.class);
        LockRegistry locks = a.getBean(LockRegistry.class);
        for (int i = 0; i < 2_000; i++) {
            jobs.turn(i);
            locks.runOnce("programmatic-" + i, () -> {});
        }
        List<Meter.Id> before = ofLocks(a);
        a.getBean(Spans.class).ended.clear();
        long used = usedHeap();
        for (int i = 0; i < 10_000; i++) {
            jobs.turn(1_000_000 + i);
        }
        for (int i = 0; i < 1_000; i++) {
            locks.runOnce("programmatic-" + (1_000_000 + i), () -> {});
        }
        a.getBean(Spans.class).ended.clear();
        long grown = usedHeap() - used;

        assertThat(grown).as("bytes of heap for 11,000 names: %d", grown).isLessThan(700_000);
        List<Meter.Id> after = ofLocks(a);
        assertThat(after).containsExactlyInAnyOrderElementsOf(before);
        assertThat(meters(a.getBean(MeterRegistry.class)).stream().filter(meter -> {
                    String lock = meter.getId().getTag("lock");
                    return lock == null || lock.startsWith("turn-");
                }))
                .as("those of ten thousand names of one method, and those of no lock")
                .hasSizeLessThanOrEqualTo(20);
        assertThat(after.stream().map(id -> id.getTag("lock")).distinct())
                .as("one template, twenty names of a program, and others")
                .contains("turn-#{#id}", "other")
                .hasSizeLessThanOrEqualTo(22);
    }

    /** The others come with the first heartbeat, whenever that is. */
    private static List<Meter.Id> ofLocks(ConfigurableApplicationContext replica) {
        return meters(replica.getBean(MeterRegistry.class)).stream()
                .map(Meter::getId)
                .filter(id -> id.getTag("lock") != null)
                .toList();
    }

    private static long usedHeap() throws InterruptedException {
        MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            memory.gc();
            TimeUnit.MILLISECONDS.sleep(50);
            least = Math.min(least, memory.getHeapMemoryUsage().getUsed());
        }
        return least;
    }

    private static List<String> keys(Iterable<KeyValue> values) {
        return StreamSupport.stream(values.spliterator(), false)
                .map(KeyValue::getKey)
                .sorted()
                .toList();
    }

    private static List<String> names(KeyName[] names) {
        return Arrays.stream(names).map(KeyName::asString).sorted().toList();
    }

    static class Work extends Application {

        @Bean
        Jobs jobs() {
            return new Jobs();
        }

        @Bean
        Spans spans() {
            return new Spans();
        }
    }

    static class Renamed extends Work {

        @Bean
        LockObservationConvention ours() {
            return new DefaultLockObservationConvention() {
                @Override
                public String getName() {
                    return "our.locks";
                }
            };
        }
    }

    static class Jobs {

        @Singleton("turn-#{#id}")
        void turn(long id) {}

        @RunOnce("skipped")
        String skipped() {
            return "ran";
        }
    }

    static class Spans implements ObservationHandler<LockObservationContext> {

        final List<LockObservationContext> ended = new CopyOnWriteArrayList<>();

        @Override
        public void onStop(LockObservationContext context) {
            ended.add(context);
        }

        @Override
        public boolean supportsContext(Observation.Context context) {
            return context instanceof LockObservationContext;
        }
    }
}
