package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockContext;
import dev.pglock.LockRegistry;
import dev.pglock.annotation.RunOnce;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.springframework.aot.AotDetector;
import org.springframework.aot.test.generate.TestGenerationContext;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.test.tools.CompileWithForkedClassLoader;
import org.springframework.core.test.tools.TestCompiler;
import org.springframework.javapoet.ClassName;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import reactor.core.publisher.Mono;

/** An application that was processed ahead of time, on the JVM: built once without a database, configured later. */
class AheadOfTimeTests {

    @Test
    @CompileWithForkedClassLoader
    void jobsOfAProcessedApplicationAreLocked() {
        process(initializer -> {
            try (TestDatabase database = PostgresServer.shared().newDatabase()) {
                database.execute("CREATE TABLE runs (job text, replica text, started timestamptz, ended timestamptz)");
                List<GenericApplicationContext> replicas = new ArrayList<>();
                try {
                    replicas.add(start("A", database, initializer));
                    replicas.add(start("B", database, initializer));
                    await().atMost(Duration.ofSeconds(20))
                            .until(() -> runs(database, "repeated") >= 10 && runs(database, "reactive") >= 5);
                    GenericApplicationContext a = replicas.get(0);
                    assertThat(a.getBean(Jobs.class).future().join()).isEqualTo("future");
                    assertThat(a.getBean(LockRegistry.class).findAll())
                            .extracting("name")
                            .contains("Jobs.repeated", "Jobs.reactive", "future");
                } finally {
                    replicas.forEach(GenericApplicationContext::close);
                }
                assertThat(database.number(
                                "SELECT count(*) FROM runs a JOIN runs b ON a.job = b.job AND a.ctid < b.ctid"
                                        + " AND a.started < b.ended AND b.started < a.ended"))
                        .isZero();
            }
        });
    }

    private static long runs(TestDatabase database, String job) {
        return database.number("SELECT count(*) FROM runs WHERE job = ?", job);
    }

    private static void process(Consumer<ApplicationContextInitializer<GenericApplicationContext>> then) {
        AnnotationConfigApplicationContext built = new AnnotationConfigApplicationContext();
        configure(built.getEnvironment(), Map.of());
        built.register(Application.class);
        TestGenerationContext generated = new TestGenerationContext();
        ClassName name = new ApplicationContextAotGenerator().processAheadOfTime(built, generated);
        generated.writeGeneratedContent();
        TestCompiler.forSystem().with(generated).compile(compiled -> {
            @SuppressWarnings("unchecked")
            ApplicationContextInitializer<GenericApplicationContext> initializer =
                    compiled.getInstance(ApplicationContextInitializer.class, name.toString());
            System.setProperty(AotDetector.AOT_ENABLED, "true");
            try {
                then.accept(initializer);
            } finally {
                System.clearProperty(AotDetector.AOT_ENABLED);
            }
        });
    }

    private static GenericApplicationContext start(
            String replica,
            TestDatabase database,
            ApplicationContextInitializer<GenericApplicationContext> initializer) {
        GenericApplicationContext context = new GenericApplicationContext();
        configure(
                context.getEnvironment(),
                Map.of(
                        "pglock.instance-id",
                        replica,
                        "pglock.lease-duration",
                        "2s",
                        "pglock.heartbeat-interval",
                        "300ms",
                        "spring.datasource.url",
                        database.url(),
                        "spring.datasource.username",
                        database.username(),
                        "spring.datasource.password",
                        database.password()));
        initializer.initialize(context);
        context.refresh();
        return context;
    }

    private static void configure(ConfigurableEnvironment environment, Map<String, Object> properties) {
        Map<String, Object> all = new HashMap<>(properties);
        all.put("spring.application.name", "aot");
        all.put("spring.flyway.enabled", "false");
        environment.getPropertySources().addFirst(new MapPropertySource("test", all));
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableScheduling
    static class Application {

        @Bean
        Jobs jobs(JdbcTemplate jdbc, Environment environment) {
            return new Jobs(new TwoReplicas.Recorder(jdbc, environment.getProperty("pglock.instance-id")));
        }
    }

    static class Jobs {

        private final TwoReplicas.Recorder recorder;

        Jobs(TwoReplicas.Recorder recorder) {
            this.recorder = recorder;
        }

        @Scheduled(fixedDelay = 50)
        @Scheduled(fixedDelay = 70)
        void repeated() {
            LockContext.requireHeld("Jobs.repeated");
            recorder.run("repeated", 20);
        }

        @Scheduled(fixedDelay = 50)
        Mono<Void> reactive() {
            LockContext.requireHeld("Jobs.reactive");
            return Mono.fromRunnable(() -> recorder.run("reactive", 20));
        }

        @RunOnce("future")
        CompletableFuture<String> future() {
            LockContext.requireHeld("future");
            return CompletableFuture.completedFuture("future");
        }
    }
}
