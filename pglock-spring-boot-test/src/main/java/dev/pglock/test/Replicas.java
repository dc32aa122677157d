package dev.pglock.test;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * The two replicas of a test method, as {@link TwoReplicas} describes them. To be used by the method's thread.
 */
public final class Replicas implements AutoCloseable {

    private final String url;
    private final Runnable afterwards;
    private final List<ConfigurableApplicationContext> running = new ArrayList<>();
    private @Nullable ConfigurableApplicationContext a;
    private @Nullable ConfigurableApplicationContext b;

    private Replicas(String url, Runnable afterwards) {
        this.url = url;
        this.afterwards = afterwards;
    }

    static Replicas start(TwoReplicas described, Supplier<EmbeddedServer> server) {
        Replicas replicas;
        if (described.url().isEmpty()) {
            EmbeddedServer embedded = server.get();
            String url = embedded.newDatabase();
            replicas = new Replicas(url, () -> embedded.drop(url));
        } else {
            replicas = new Replicas(described.url(), () -> {});
        }
        try {
            replicas.a = replicas.start("a", described);
            replicas.b = replicas.start("b", described);
            return replicas;
        } catch (RuntimeException | Error e) {
            replicas.close();
            throw e;
        }
    }

    private ConfigurableApplicationContext start(String label, TwoReplicas described) {
        List<String> properties = new ArrayList<>(List.of(
                "pglock.instance-id=" + label,
                "pglock.lease-duration=2s",
                "server.port=0",
                "spring.datasource.url=" + url,
                "spring.main.banner-mode=off",
                "spring.main.register-shutdown-hook=false"));
        if (described.url().isEmpty()) {
            properties.add("spring.datasource.username=postgres");
            properties.add("spring.datasource.password=postgres");
        }
        properties.addAll(Arrays.asList(described.properties()));
        // As arguments, because they are to win over the application's own files. The last of a name wins.
        String[] arguments = properties.stream()
                .filter(property -> !isSetAgain(property, described))
                .map(property -> "--" + property)
                .toArray(String[]::new);
        ConfigurableApplicationContext context = new SpringApplicationBuilder(described.value()).run(arguments);
        running.add(context);
        return context;
    }

    private static boolean isSetAgain(String property, TwoReplicas described) {
        String key = property.substring(0, property.indexOf('=') + 1);
        return Arrays.stream(described.properties())
                .anyMatch(other -> other.startsWith(key) && !other.equals(property));
    }

    /**
     * The replica with the label {@code a}.
     *
     * @return its context
     */
    public ConfigurableApplicationContext a() {
        return started(a);
    }

    /**
     * The replica with the label {@code b}.
     *
     * @return its context
     */
    public ConfigurableApplicationContext b() {
        return started(b);
    }

    private static ConfigurableApplicationContext started(@Nullable ConfigurableApplicationContext replica) {
        if (replica == null) {
            throw new IllegalStateException("The replica has not been started");
        }
        return replica;
    }

    /**
     * Both that are still running.
     *
     * @return their contexts
     */
    public List<ConfigurableApplicationContext> running() {
        return List.copyOf(running);
    }

    /**
     * Stops a replica for good, in order, as a deployment does: it waits for the locked bodies that run there. For a replica
     * that takes no part for a while there are {@link ConfigurableApplicationContext#stop()} and {@code start()}.
     *
     * @param replica {@link #a()} or {@link #b()}
     */
    public void stop(ConfigurableApplicationContext replica) {
        running.remove(replica);
        replica.close();
    }

    /**
     * The database's JDBC URL, with user and password where the server asks for them.
     *
     * @return the URL
     */
    public String url() {
        return url;
    }

    /**
     * A connection of the test's own, to see what is in the database.
     *
     * @return to be closed by the caller
     * @throws SQLException if there is none
     */
    public Connection connection() throws SQLException {
        return DriverManager.getConnection(url);
    }

    /** Stops what still runs, and drops the database if it was made for this. Called by the extension. */
    @Override
    public void close() {
        try {
            running.forEach(ConfigurableApplicationContext::close);
        } finally {
            afterwards.run();
        }
    }
}
