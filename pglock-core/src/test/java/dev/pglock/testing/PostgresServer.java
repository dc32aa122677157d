package dev.pglock.testing;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.testcontainers.postgresql.PostgreSQLContainer;

/**
 * The PostgreSQL of the tests. {@code -Dpglock.test.postgres} chooses it:
 *
 * <ul>
 *   <li>{@code embedded} (default): starts the binaries that come as a test dependency
 *   <li>{@code testcontainers}, or {@code testcontainers:postgres:17}: starts a container, which needs Docker
 *   <li>{@code jdbc:postgresql://host/db?user=…&password=…}: uses one that runs already, as a superuser
 * </ul>
 *
 * Autovacuum is off, so that nothing but the tests writes WAL or takes transaction ids.
 */
public final class PostgresServer implements AutoCloseable {

    /** The system property. */
    public static final String CHOICE = "pglock.test.postgres";

    private static final Pattern URL =
            Pattern.compile("jdbc:postgresql://(?<host>[^/:]+)(:(?<port>\\d+))?/[^?]*(?<query>.*)");
    private static final String WITH_PASSWORD = "pglock_test_roles";
    private static final String CONTAINERS = "testcontainers";
    private static final String IMAGE = "postgres:18-alpine";

    /**
     * Enough for many contexts and replicas at once; durability against power failure is not what is tested. What was
     * committed is written, though, as it is on everybody's server: the embedded one would leave that for later, and
     * a standby that seems to have caught up, or a server that was killed, would not have it.
     */
    private static final Map<String, String> SETTINGS = Map.of(
            "autovacuum", "off",
            "fsync", "off",
            "synchronous_commit", "on",
            "max_connections", "300",
            "log_statement", "none");

    private static final class Shared {
        private static final PostgresServer INSTANCE = start();
    }

    private final String host;
    private final int port;
    private final String username;
    private final String password;
    private final AutoCloseable resource;
    private final AtomicBoolean passwordsRequired = new AtomicBoolean();

    private PostgresServer(String host, int port, String username, String password, AutoCloseable resource) {
        this.host = host;
        this.port = port;
        this.username = username;
        this.password = password;
        this.resource = resource;
    }

    /** The one of this JVM. Never stop or reconfigure it. */
    public static PostgresServer shared() {
        return Shared.INSTANCE;
    }

    /** One that a test has to itself, may stop, and must close. Always an embedded one. */
    public static PostgresServer dedicated() {
        return embedded(Map.of());
    }

    /** The same, with settings that are made at the start. */
    public static PostgresServer dedicated(Map<String, String> settings) {
        return embedded(settings);
    }

    private static PostgresServer start() {
        String choice = System.getProperty(CHOICE, "embedded");
        if (choice.equals("embedded")) {
            return embedded(Map.of());
        }
        if (choice.equals(CONTAINERS) || choice.startsWith(CONTAINERS + ":")) {
            return container(choice.equals(CONTAINERS) ? IMAGE : choice.substring(CONTAINERS.length() + 1));
        }
        if (choice.startsWith("jdbc:postgresql:")) {
            return running(choice);
        }
        throw new IllegalArgumentException("-D" + CHOICE + "=" + choice
                + " is none of: embedded, testcontainers, testcontainers:image, jdbc:postgresql://host/db?user=…");
    }

    /** Whether the one of the tests is embedded, and tests may do with servers and their files what they like. */
    static boolean isEmbedded() {
        return System.getProperty(CHOICE, "embedded").equals("embedded");
    }

    private static PostgresServer embedded(Map<String, String> more) {
        return embedded(withSettings(EmbeddedPostgres.builder(), more));
    }

    /** With its data in that directory, which stays when it is closed and is created when it is empty. */
    static PostgresServer embedded(Path data) {
        return embedded(builder(Map.of(), data));
    }

    static EmbeddedPostgres.Builder builder(Map<String, String> more, Path data) {
        return withSettings(EmbeddedPostgres.builder(), more)
                .setDataDirectory(data)
                .setCleanDataDirectory(false)
                .setPGStartupWait(Duration.ofSeconds(30));
    }

    private static EmbeddedPostgres.Builder withSettings(EmbeddedPostgres.Builder builder, Map<String, String> more) {
        SETTINGS.forEach(builder::setServerConfig);
        more.forEach(builder::setServerConfig);
        return builder;
    }

    private static PostgresServer embedded(EmbeddedPostgres.Builder builder) {
        try {
            return of(builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException("The embedded PostgreSQL did not start; use another with -D" + CHOICE, e);
        }
    }

    static PostgresServer of(EmbeddedPostgres server) {
        return new PostgresServer("localhost", server.getPort(), "postgres", "postgres", server);
    }

    private static PostgresServer container(String image) {
        PostgreSQLContainer container = new PostgreSQLContainer(image).withUsername("postgres");
        StringBuilder command = new StringBuilder("postgres");
        SETTINGS.forEach(
                (name, value) -> command.append(" -c ").append(name).append('=').append(value));
        container.withCommand(command.toString());
        try {
            container.start();
        } catch (RuntimeException e) {
            throw new IllegalStateException(
                    "-D" + CHOICE + "=" + CONTAINERS + " needs Docker, and it cannot be used here: " + e.getMessage()
                            + ". Leave the property out for an embedded PostgreSQL, or name one that runs: -D" + CHOICE
                            + "=jdbc:postgresql://host/db?user=…&password=…",
                    e);
        }
        return new PostgresServer(
                container.getHost(),
                container.getMappedPort(PostgreSQLContainer.POSTGRESQL_PORT),
                container.getUsername(),
                container.getPassword(),
                container);
    }

    private static PostgresServer running(String url) {
        Matcher matcher = URL.matcher(url);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("-D" + CHOICE + " must look like jdbc:postgresql://host:port/db?user=…");
        }
        String port = matcher.group("port");
        String query = matcher.group("query");
        return new PostgresServer(
                matcher.group("host"),
                port == null ? 5432 : Integer.parseInt(port),
                parameter(query, "user", "postgres"),
                parameter(query, "password", ""),
                () -> {});
    }

    private static String parameter(String query, String name, String otherwise) {
        Matcher matcher = Pattern.compile("[?&]" + name + "=([^&]*)").matcher(query);
        return matcher.find() ? matcher.group(1) : otherwise;
    }

    /** A fresh, empty database. */
    public TestDatabase newDatabase() {
        String name = "test_" + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
        execute("CREATE DATABASE " + name);
        return database(name);
    }

    TestDatabase database(String name) {
        return new TestDatabase(this, name, host, port, username, password);
    }

    /** A role that may log in and nothing else. Its password is its name, and it is asked for it. */
    public String newRole() {
        requirePasswords();
        String role = "role_" + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
        execute("CREATE ROLE " + role + " LOGIN PASSWORD '" + role + "' IN ROLE " + WITH_PASSWORD);
        return role;
    }

    /** An embedded server trusts everybody. The roles of tests are to be asked for their passwords all the same. */
    private void requirePasswords() {
        if (!passwordsRequired.compareAndSet(false, true)) {
            return;
        }
        // COPY empties the file before it runs its query: what was in it must be read first.
        execute("""
                DO $$
                DECLARE
                  file text := current_setting('hba_file');
                  rules text := pg_read_file(file);
                BEGIN
                  IF to_regrole('%1$s') IS NULL THEN
                    CREATE ROLE %1$s;
                    EXECUTE format(
                      'COPY (SELECT %%L UNION ALL SELECT * FROM string_to_table(%%L, chr(10))) TO %%L',
                      'host all +%1$s all scram-sha-256', rules, file);
                    PERFORM pg_reload_conf();
                  END IF;
                END $$
                """.formatted(WITH_PASSWORD));
    }

    /** Runs a statement as the superuser, in the database {@code postgres}. */
    public void execute(String sql) {
        try (Connection connection = DriverManager.getConnection(url("postgres"), username, password);
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(sql + ": " + e.getMessage(), e);
        }
    }

    public String host() {
        return host;
    }

    public int port() {
        return port;
    }

    String username() {
        return username;
    }

    String password() {
        return password;
    }

    String url(String database) {
        return "jdbc:postgresql://" + host + ":" + port + "/" + database;
    }

    /** Stops it. The shared one needs no stopping: it ends with the JVM. */
    @Override
    public void close() {
        try {
            resource.close();
        } catch (Exception e) {
            throw new IllegalStateException("The server could not be stopped", e);
        }
    }
}
