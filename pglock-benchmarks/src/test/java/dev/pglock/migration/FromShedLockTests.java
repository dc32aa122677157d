package dev.pglock.migration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.annotation.RunOnce;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import net.javacrumbs.shedlock.core.LockAssert;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.spring.annotation.EnableSchedulerLock;
import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.transaction.annotation.Transactional;

/** Three releases of a service, two of which run at a time. */
class FromShedLockTests {

    private static final String SCHEMA = """
            CREATE TABLE shedlock (name varchar(64) NOT NULL, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL,
              locked_by varchar(255) NOT NULL, PRIMARY KEY (name));
            CREATE TABLE runs (replica text, started timestamptz, ended timestamptz);
            """;

    /** Seconds; as in the expression of the jobs. */
    private static final int PERIOD = 3;

    private final TestDatabase database = PostgresServer.shared().newDatabase();
    private final List<ConfigurableApplicationContext> replicas = new ArrayList<>();

    @BeforeEach
    void prepare() {
        database.execute(SCHEMA);
    }

    @AfterEach
    void stop() {
        replicas.forEach(ConfigurableApplicationContext::close);
        database.close();
    }

    private ConfigurableApplicationContext start(String label, Class<?> release) {
        List<String> arguments = new ArrayList<>(List.of(
                "--spring.application.name=shop",
                "--pglock.instance-id=" + label,
                "--spring.datasource.url=" + database.url(),
                "--spring.datasource.username=" + database.username(),
                "--spring.datasource.password=" + database.password()));
        if (release == Release0.class) {
            // What is on its class path only because the later releases are here as well
            arguments.add("--spring.autoconfigure.exclude="
                    + ImportCandidates.load(AutoConfiguration.class, null).getCandidates().stream()
                            .filter(name -> name.startsWith("dev.pglock."))
                            .collect(Collectors.joining(",")));
        }
        ConfigurableApplicationContext replica = new SpringApplicationBuilder(release)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .run(arguments.toArray(String[]::new));
        replicas.add(replica);
        return replica;
    }

    @Test
    void aRollingDeployByWayOfBothLocksRunsEachTickOnceAndNeverTwoAtATime() {
        ConfigurableApplicationContext old = start("old-1", Release0.class);
        ConfigurableApplicationContext older = start("old-2", Release0.class);
        awaitRuns(1);

        older.close();
        ConfigurableApplicationContext both = start("both-1", Release1.class);
        everyTickRunsOnce();

        old.close();
        start("both-2", Release1.class);
        awaitRuns(1);
        both.close();
        start("new-1", Release2.class);
        everyTickRunsOnce();

        assertThat(database.number("SELECT count(*) FROM runs a JOIN runs b ON a.ctid < b.ctid"
                        + " AND a.started < b.ended AND b.started < a.ended"))
                .isZero();
        assertThat(database.number("SELECT count(*) - count(DISTINCT floor(extract(epoch FROM started) / " + PERIOD
                        + ")) FROM runs"))
                .as("ticks that ran twice")
                .isZero();
    }

    /**
     * With the new lock outside, the tick would have been granted to the release that has both, and then been denied by the
     * old lock: it would run nowhere.
     */
    @Test
    void anOldLockThatIsLeftByADeadReplicaKeepsNoTickFromTheNewestRelease() {
        database.execute("INSERT INTO shedlock VALUES ('report', timezone('utc', now()) + interval '10 minutes',"
                + " timezone('utc', now()), 'dead')");
        start("both", Release1.class);
        start("new", Release2.class);
        everyTickRunsOnce();
        assertThat(database.number("SELECT count(*) FROM runs WHERE replica <> 'new'"))
                .isZero();
    }

    /** Of the ticks that fall into the time of two more runs. */
    private void everyTickRunsOnce() {
        long first = database.number("SELECT floor(extract(epoch FROM clock_timestamp()) / " + PERIOD + ")") + 1;
        long last = first + 2;
        await().atMost(Duration.ofSeconds(60))
                .until(() -> database.isTrue(
                        "SELECT extract(epoch FROM clock_timestamp()) / " + PERIOD + " > " + last + " + 0.9"));
        assertThat(database.text(
                        "SELECT string_agg(tick || ':' || runs, ' ' ORDER BY tick) FROM (SELECT tick, count(replica)"
                                + " AS runs FROM generate_series(" + first + ", " + last + ") AS tick LEFT JOIN runs"
                                + " ON floor(extract(epoch FROM started) / " + PERIOD
                                + ") = tick GROUP BY tick) AS ticks"))
                .as("runs of each tick")
                .isEqualTo(first + ":1 " + (first + 1) + ":1 " + last + ":1");
    }

    private void awaitRuns(int more) {
        long before = database.number("SELECT count(*) FROM runs");
        await().atMost(Duration.ofSeconds(60))
                .until(() -> database.number("SELECT count(*) FROM runs") >= before + more);
    }

    /** What is the same in all of them. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableScheduling
    static class Shop {

        @Bean
        Book book(JdbcTemplate jdbc, Environment environment) {
            return new Book(jdbc, environment.getRequiredProperty("pglock.instance-id"));
        }
    }

    static class OldLocks extends Shop {

        @Bean
        LockProvider lockProvider(DataSource dataSource) {
            return new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
                    .withJdbcTemplate(new JdbcTemplate(dataSource))
                    .usingDbTime()
                    .build());
        }
    }

    @EnableSchedulerLock(defaultLockAtMostFor = "10s")
    static class Release0 extends OldLocks {

        @Bean
        Report report(Book book) {
            return new Report(book);
        }

        static class Report {

            private final Book book;

            Report(Book book) {
                this.book = book;
            }

            @Scheduled(cron = "*/3 * * * * *")
            @SchedulerLock(name = "report", lockAtMostFor = "10s", lockAtLeastFor = "1500ms")
            @Transactional
            public void report() {
                LockAssert.assertLocked();
                book.write();
            }
        }
    }

    @EnableSchedulerLock(defaultLockAtMostFor = "10s", order = 0)
    static class Release1 extends OldLocks {

        @Bean
        Report report(Book book) {
            return new Report(book);
        }

        static class Report {

            private final Book book;

            Report(Book book) {
                this.book = book;
            }

            @Scheduled(cron = "*/3 * * * * *")
            @SchedulerLock(name = "report", lockAtMostFor = "10s", lockAtLeastFor = "1500ms")
            @RunOnce("report")
            @Transactional
            public void report() {
                LockAssert.assertLocked();
                LockContext.requireHeld("report");
                book.write();
            }
        }
    }

    static class Release2 extends Shop {

        @Bean
        Report report(Book book) {
            return new Report(book);
        }

        static class Report {

            private final Book book;

            Report(Book book) {
                this.book = book;
            }

            @Scheduled(cron = "*/3 * * * * *")
            @RunOnce("report")
            @Transactional
            public void report() {
                LockContext.requireHeld("report");
                book.write();
            }
        }
    }

    /** Writes down what ran, by the server's clock. */
    static class Book {

        private final JdbcTemplate jdbc;
        private final String replica;

        Book(JdbcTemplate jdbc, String replica) {
            this.jdbc = jdbc;
            this.replica = replica;
        }

        void write() {
            jdbc.update(
                    "WITH ran AS MATERIALIZED (SELECT clock_timestamp() AS started, pg_sleep(0.3)) INSERT INTO runs"
                            + " SELECT ?, started, clock_timestamp() FROM ran",
                    replica);
        }
    }
}
