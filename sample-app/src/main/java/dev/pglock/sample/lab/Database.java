package dev.pglock.sample.lab;

import dev.pglock.sample.postgres.OwnPostgres;
import java.net.InetSocketAddress;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The PostgreSQL of the lab: its own, which it may stop, or somebody's, which it may not. Thread-safe. */
final class Database implements AutoCloseable {

    private static final Pattern URL =
            Pattern.compile("jdbc:postgresql://(?<host>[^/:,]+)(:(?<port>\\d+))?/(?<rest>.*)");

    private static final int POSTGRESQL_PORT = 5432;

    private final @Nullable OwnPostgres own;

    private final String url;

    private final String username;

    private final String password;

    private volatile boolean stopped;

    private Database(@Nullable OwnPostgres own, String url, String username, String password) {
        this.own = own;
        this.url = url;
        this.username = username;
        this.password = password;
    }

    /** Blocks until it takes connections. The port makes the state directory ours: no two labs have the same. */
    static Database open(LabOptions options, int labPort) {
        String given = options.url();
        if (given == null) {
            OwnPostgres own = OwnPostgres.start(OwnPostgres.stateDirectory("lab-" + labPort));
            return new Database(own, own.url(), own.username(), own.password());
        }
        if (!URL.matcher(given).matches()) {
            throw new LabException("--lab.url must look like jdbc:postgresql://host:port/database, with one host.");
        }
        return new Database(
                null,
                given,
                options.username() == null ? System.getProperty("user.name") : options.username(),
                options.password() == null ? System.getenv().getOrDefault("PGPASSWORD", "") : options.password());
    }

    String url() {
        return this.url;
    }

    /** The same database through a proxy. */
    String urlThrough(int proxyPort) {
        return "jdbc:postgresql://localhost:" + proxyPort + "/" + matcher().group("rest");
    }

    InetSocketAddress address() {
        Matcher matcher = matcher();
        String port = matcher.group("port");
        return new InetSocketAddress(matcher.group("host"), port == null ? POSTGRESQL_PORT : Integer.parseInt(port));
    }

    private Matcher matcher() {
        Matcher matcher = URL.matcher(this.url);
        if (!matcher.matches()) {
            throw new IllegalStateException(this.url);
        }
        return matcher;
    }

    String username() {
        return this.username;
    }

    String password() {
        return this.password;
    }

    boolean isOurs() {
        return this.own != null;
    }

    boolean isStopped() {
        return this.stopped;
    }

    /** Ends all sessions and stops the server; blocks until it has stopped. */
    void stop() {
        this.stopped = true;
        ours().stop();
    }

    /** Starts it again; blocks until it takes connections. */
    void start() {
        ours().restart();
        this.stopped = false;
    }

    private OwnPostgres ours() {
        if (this.own == null) {
            throw new LabException("The lab does not stop a PostgreSQL that it has not started.");
        }
        return this.own;
    }

    @Override
    public void close() {
        if (this.own != null) {
            this.own.close();
        }
    }
}
