package dev.pglock.sample.postgres;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/**
 * Provides {@code spring.datasource.url} when nobody else does. Registered in {@code META-INF/spring.factories}, hence
 * active under {@code spring-boot:run}, from the jar, and in {@code @SpringBootTest}.
 *
 * <p>An initializer and not an {@code EnvironmentPostProcessor}, because those run before the logging system is up: the
 * lines that say where the server is would be lost. Every configuration file has been read by now, and bean definitions
 * have not.
 *
 * <p>The server is released by a {@link SpringApplication#getShutdownHandlers() shutdown handler}: those run after all
 * contexts of the JVM have been closed, so that the {@code DataSource} works for every bean until the end, and also
 * when a context failed to start (port 8080 taken by the first instance) and none of its beans was ever destroyed. A
 * JVM shutdown hook of our own would run at the same time as Spring's, and a bean would end with the first of several
 * contexts of a test.
 *
 * <p>Properties: {@code sample.postgres.enabled} (true), {@code sample.postgres.state-directory} (below the temporary
 * directory). They are not called {@code pglock.…} because pglock refuses properties it does not know.
 */
public class SharedPostgresInitializer implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    private static @Nullable SharedPostgres shared;

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        ConfigurableEnvironment environment = context.getEnvironment();
        if (environment.containsProperty("spring.datasource.url")
                || !environment.getProperty("sample.postgres.enabled", Boolean.class, true)) {
            return;
        }
        String stateDirectory = environment.getProperty("sample.postgres.state-directory");
        SharedPostgres postgres = join(stateDirectory == null ? StateDirectory.ofThisUser() : Path.of(stateDirectory));
        // First: a stray SPRING_DATASOURCE_USERNAME does not belong to this server.
        environment
                .getPropertySources()
                .addFirst(new MapPropertySource(
                        "sharedPostgres",
                        Map.of(
                                "spring.datasource.url", postgres.url(),
                                "spring.datasource.username", postgres.username(),
                                "spring.datasource.password", postgres.password())));
    }

    /** Once per JVM, however many contexts it has. */
    private static synchronized SharedPostgres join(Path stateDirectory) {
        if (shared == null) {
            // Before joining: told to stop while the server starts, the handler waits for it and then stops it.
            SpringApplication.getShutdownHandlers().add(SharedPostgresInitializer::leave);
            shared = SharedPostgres.join(stateDirectory);
        }
        return shared;
    }

    private static synchronized void leave() {
        if (shared != null) {
            shared.close();
            shared = null;
        }
    }
}
