package dev.pglock.autoconfigure;

import dev.pglock.LockContext;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** Applications on one database, as replicas of a service, and what they did, by the server's clock. */
abstract class TwoReplicas {

    final TestDatabase database;
    final List<ConfigurableApplicationContext> replicas = new ArrayList<>();

    TwoReplicas() {
        this(PostgresServer.shared().newDatabase());
    }

    TwoReplicas(TestDatabase database) {
        this.database = database;
    }

    @BeforeEach
    void prepare() {
        database.execute("CREATE TABLE runs (job text, replica text, started timestamptz, ended timestamptz)");
        database.execute("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0)");
    }

    @AfterEach
    void stop() {
        replicas.forEach(ConfigurableApplicationContext::close);
        database.close();
    }

    ConfigurableApplicationContext start(String replica, Class<?> configuration, String... properties) {
        return start(replica, database.url(), configuration, properties);
    }

    ConfigurableApplicationContext start(String replica, String url, Class<?> configuration, String... properties) {
        Map<String, Object> all = new HashMap<>(Map.of(
                "spring.application.name", "orders",
                "pglock.instance-id", replica,
                "pglock.lease-duration", "2s",
                "pglock.heartbeat-interval", "300ms",
                "spring.datasource.url", url,
                "spring.datasource.username", database.username(),
                "spring.datasource.password", database.password(),
                "spring.datasource.hikari.maximum-pool-size", "4",
                "spring.lifecycle.timeout-per-shutdown-phase", "5s",
                "spring.flyway.enabled", "false"));
        for (String property : properties) {
            int equals = property.indexOf('=');
            all.put(property.substring(0, equals), property.substring(equals + 1));
        }
        ConfigurableApplicationContext context = new SpringApplicationBuilder(configuration)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .registerShutdownHook(false)
                .properties(all)
                .run();
        replicas.add(context);
        return context;
    }

    long runs(String job) {
        return database.number("SELECT count(*) FROM runs WHERE job = ?", job);
    }

    long overlaps(String job) {
        return database.number(
                "SELECT count(*) FROM runs a JOIN runs b ON a.job = b.job AND a.ctid < b.ctid"
                        + " AND a.started < b.ended AND b.started < a.ended WHERE a.job = ?",
                job);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableScheduling
    static class Application {}

    /** Writes down what ran, by the server's clock. */
    static class Recorder {

        final JdbcTemplate jdbc;
        final String replica;

        Recorder(JdbcTemplate jdbc, String replica) {
            this.jdbc = jdbc;
            this.replica = replica;
        }

        void run(String job, long millis) {
            String started = jdbc.queryForObject("SELECT clock_timestamp()::text", String.class);
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
            jdbc.update("INSERT INTO runs VALUES (?, ?, ?::timestamptz, clock_timestamp())", job, replica, started);
        }
    }

    static class Ticking extends Application {

        @Bean
        TickingJob tickingJob(JdbcTemplate jdbc, Environment environment) {
            return new TickingJob(new Recorder(jdbc, environment.getProperty("pglock.instance-id")));
        }
    }

    static class TickingJob {

        private final Recorder recorder;

        TickingJob(Recorder recorder) {
            this.recorder = recorder;
        }

        @Scheduled(fixedDelay = 50)
        void tick() {
            LockContext.requireHeld("TickingJob.tick");
            recorder.run("tick", 30);
        }
    }
}
