package dev.pglock.sample.lab;

import dev.pglock.LockRegistry;
import dev.pglock.sample.postgres.OwnPostgres;
import dev.pglock.sample.postgres.SharedPostgresException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeansException;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.jdbc.core.simple.JdbcClient;

/**
 * Starts and stops a PostgreSQL, three replicas and the page, and is what the questions act on. Whatever it started ends with
 * it; replicas even when it is killed, because their input ends then. Thread-safe.
 */
public final class Lab implements AutoCloseable {

    /** That of the sample, by its application name. */
    static final String NAMESPACE = "pglock-sample";

    private static final List<String> NAMES = List.of("A", "B", "C");

    private final LabOptions options;

    private final Board board = new Board();

    private final ReentrantLock guard = new ReentrantLock();

    private final LabServer server;

    private final Questions questions = new Questions(this);

    private volatile List<Replica> replicas = List.of();

    private volatile @Nullable Database database;

    private volatile @Nullable ConfigurableApplicationContext context;

    private @Nullable LockWatch watch;

    private boolean closed;

    private Lab(LabOptions options) {
        this.options = options;
        this.server = LabServer.bind(options.port(), this);
    }

    /** Whether a command line asks for the lab instead of a replica. */
    public static boolean isAskedFor(String... arguments) {
        return Arrays.asList(arguments).contains(LabOptions.SWITCH);
    }

    /** The lab as a program: until Ctrl-C. */
    public static void main(String... arguments) {
        try {
            // The log of a server that starts says less than the lab itself.
            LoggingSystem.get(Lab.class.getClassLoader()).beforeInitialize();
            Lab lab = new Lab(LabOptions.of(arguments));
            Runtime.getRuntime().addShutdownHook(new Thread(lab::stopWithWords, "lab-stop"));
            lab.start();
            say("The lab is at " + lab.url() + " - Ctrl-C stops it and all that it started.");
        } catch (LabException | SharedPostgresException ex) {
            say(String.valueOf(ex.getMessage()));
            System.exit(1);
        } catch (RuntimeException ex) {
            say("The lab could not be started: " + ex);
            System.exit(1);
        }
    }

    /** Binds the port, then starts everything; returns when the processes have been started. */
    static Lab open(String... arguments) {
        Lab lab = new Lab(LabOptions.of(arguments));
        try {
            lab.start();
            return lab;
        } catch (RuntimeException ex) {
            lab.close();
            throw ex;
        }
    }

    private void start() {
        // The page first: who opens it too early sees the lab start.
        this.server.start();
        locked(() -> {
            say(this.options.url() == null ? "Starting PostgreSQL…" : "Using " + this.options.url());
            Database opened = Database.open(this.options, this.server.port());
            this.database = opened;
            return null;
        });
        locked(() -> {
            try {
                this.context = openRegistry(database());
            } catch (BeansException ex) {
                throw new LabException(
                        database().url() + " cannot be used: "
                                + NestedExceptionUtils.getMostSpecificCause(ex).getMessage(),
                        ex);
            }
            return null;
        });
        locked(() -> {
            say("Starting three replicas of the sample; their logs are in " + logs());
            this.replicas = NAMES.stream()
                    .map(name -> new Replica(name, database(), this.board, logs().resolve("replica-" + name + ".log")))
                    .toList();
            this.watch = new LockWatch(
                    registry(), jdbc(), this.board, name -> replica(name).is("frozen"));
            this.replicas.forEach(Replica::start);
            return null;
        });
    }

    /** A registry of the lab's own, past every proxy, that looks and pauses. */
    private static ConfigurableApplicationContext openRegistry(Database database) {
        return new SpringApplicationBuilder(Registry.class)
                .web(WebApplicationType.NONE)
                .bannerMode(Banner.Mode.OFF)
                .logStartupInfo(false)
                // It is closed when the replicas have ended, not at the same time.
                .registerShutdownHook(false)
                .properties(Map.of(
                        "logging.level.root", "off",
                        "logging.level.dev.pglock", "off",
                        "pglock.instance-id", "lab",
                        "spring.datasource.hikari.maximum-pool-size", "4",
                        "spring.datasource.hikari.connection-timeout", "2000",
                        "spring.sql.init.schema-locations", "classpath:schema.sql,classpath:schema-lab.sql"))
                .run(
                        "--pglock.instance-id=lab",
                        "--spring.datasource.url=" + database.url(),
                        "--spring.datasource.username=" + database.username(),
                        "--spring.datasource.password=" + database.password());
    }

    /** No component: the sample's scan would find it. */
    @EnableAutoConfiguration
    static class Registry {}

    // ---- what it consists of

    String url() {
        return "http://127.0.0.1:" + this.server.port() + "/";
    }

    private Path logs() {
        return OwnPostgres.stateDirectory("lab-" + this.server.port());
    }

    Board board() {
        return this.board;
    }

    Questions questions() {
        return this.questions;
    }

    List<Replica> replicas() {
        return this.replicas;
    }

    Replica replica(String name) {
        return this.replicas.stream()
                .filter(replica -> replica.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new LabException("There is no replica " + name + "."));
    }

    Database database() {
        return Objects.requireNonNullElseGet(this.database, () -> {
            throw new LabException("The lab is still starting.");
        });
    }

    /** Whether its PostgreSQL may be stopped; null while it is not known yet. */
    @Nullable
    Boolean ownsDatabase() {
        Database known = this.database;
        return known == null ? null : known.isOurs();
    }

    LockRegistry registry() {
        return context().getBean(LockRegistry.class);
    }

    JdbcClient jdbc() {
        return context().getBean(JdbcClient.class);
    }

    private ConfigurableApplicationContext context() {
        return Objects.requireNonNullElseGet(this.context, () -> {
            throw new LabException("The lab is still starting.");
        });
    }

    // ---- what is done to it

    /** All three are up and their jobs run. */
    boolean awaitReplicas(Duration atMost) throws InterruptedException {
        return this.board
                .await(
                        atMost,
                        () -> this.replicas.size() == NAMES.size()
                                        && this.replicas.stream().allMatch(replica -> replica.is("up"))
                                ? Optional.of(true)
                                : Optional.empty())
                .isPresent();
    }

    void stopDatabase() {
        this.board.done(null, "PostgreSQL is stopped");
        database().stop();
    }

    void startDatabase() {
        if (database().isStopped()) {
            database().start();
            this.board.done(null, "PostgreSQL is started");
        }
    }

    /** Ends the sessions of a replica's locks; returns how many there were. */
    int terminateSessions(String replica) {
        int ended = this.jdbc()
                .sql("""
                        SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
                        WHERE application_name = :application AND datname = current_database()
                        """)
                .param("application", "pglock:" + NAMESPACE + ":" + replica)
                .query(Integer.class)
                .single();
        this.board.done(replica, "pg_terminate_backend ended " + ended + " sessions of its locks");
        return ended;
    }

    // ---- the end

    private void stopWithWords() {
        say("Stopping the replicas and what else was started…");
        close();
        say("Stopped.");
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private <T extends @Nullable Object> void locked(java.util.function.Supplier<T> step) {
        this.guard.lock();
        try {
            if (!this.closed) {
                T ignored = step.get();
            }
        } finally {
            this.guard.unlock();
        }
    }

    /** Ends everything, in good order where that is possible in time: replicas first, PostgreSQL last. Idempotent. */
    @Override
    public void close() {
        this.guard.lock();
        try {
            if (this.closed) {
                return;
            }
            this.closed = true;
            this.server.close();
            this.questions.close();
            if (this.watch != null) {
                this.watch.close();
            }
            this.replicas.forEach(Replica::prepareToClose);
            Stream<Replica> all = this.replicas.stream();
            all.forEach(Replica::close);
            if (this.context != null) {
                this.context.close();
            }
            if (this.database != null) {
                this.database.close();
            }
        } finally {
            this.guard.unlock();
        }
    }
}
