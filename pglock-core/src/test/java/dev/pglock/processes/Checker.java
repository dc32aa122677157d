package dev.pglock.processes;

import dev.pglock.LockStrategy;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.ConnectionHog;
import dev.pglock.testing.Faults;
import dev.pglock.testing.RestartableServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TcpProxy.Way;
import dev.pglock.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Three replicas, each in a JVM and behind a network of its own, work under locks while networks, sessions, processes and
 * the server fail at random; afterwards it is checked what came of that. Arguments: for how long, such as {@code PT1H}
 * (2 minutes by default), and the seed of the faults (a new one by default).
 *
 * @see CheckedReplica what they do
 */
final class Checker {

    private static final int REPLICAS = 3;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private static final Map<String, String> SETTINGS =
            // By it the server says when a transaction was committed.
            Map.of("track_commit_timestamp", "on", "max_connections", "60");

    private static final String TABLES = """
            CREATE TABLE counter (name text PRIMARY KEY, value bigint NOT NULL DEFAULT 0);
            CREATE TABLE increment (name text NOT NULL, fence bigint NOT NULL, acquired_at timestamptz NOT NULL,
                                    value bigint NOT NULL);
            CREATE VIEW committed AS SELECT *, pg_xact_commit_timestamp(xmin) AS committed_at FROM increment;
            """;

    private static final String COMMITS = "SELECT count(*) FROM increment WHERE name LIKE ? || '%'";

    /** Increments less what the counters say. */
    private static final String LOST_UPDATES = """
            SELECT coalesce(sum((SELECT count(*) FROM increment i WHERE i.name = c.name) - c.value), 0)
            FROM counter c WHERE name LIKE ? || '%'
            """;

    /** Somebody had been granted the lock before a holder of an older tenure committed. */
    private static final String LATE_COMMITS = """
            SELECT count(*) FROM (SELECT min(acquired_at) OVER (PARTITION BY name ORDER BY fence DESC
                                                                GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                                         < committed_at AS late
                                  FROM committed WHERE name LIKE ? || '%') AS i WHERE late
            """;

    private static final String COMMITS_OUT_OF_ORDER = """
            SELECT count(*) FROM (SELECT fence < lag(fence) OVER (PARTITION BY name ORDER BY value, fence) AS wrong
                                  FROM increment WHERE name LIKE ? || '%') AS i WHERE wrong
            """;

    private final Faults faults;
    private final RestartableServer server;
    private final TestDatabase database;
    private final Path journals;
    private final List<Replica> replicas = new ArrayList<>();
    private final History history = new History();

    private Checker(Faults faults, RestartableServer server, TestDatabase database, Path journals) {
        this.faults = faults;
        this.server = server;
        this.database = database;
        this.journals = journals;
    }

    /**
     * What came of it.
     *
     * @param faults how many there were
     * @param tenures how many, of all names
     * @param commits fenced ones
     * @param lostUpdates of fenced transactions
     * @param lateCommits fenced ones of a tenure that had ended
     * @param outOfOrder fenced ones that saw what a younger tenure wrote
     * @param lostUnfenced updates of transactions that were not fenced, for comparison
     * @param overlaps bodies that ran at the same time as another, and knew nothing of their loss
     * @param longestOverlap the longest time that two did, by strategy
     * @param idle the longest time for which a name that is asked for all the time was not held after the last fault
     * @param recovered whether every name was acquired again after the last fault
     */
    record Result(
            long seed,
            int faults,
            int tenures,
            long commits,
            long lostUpdates,
            long lateCommits,
            long outOfOrder,
            long lostUnfenced,
            int overlaps,
            Map<LockStrategy, Duration> longestOverlap,
            Duration idle,
            boolean recovered) {}

    public static void main(String[] arguments) throws Exception {
        Duration duration = Duration.parse(arguments.length > 0 ? arguments[0] : "PT2M");
        Faults faults = arguments.length > 1 ? Faults.seeded(Long.parseLong(arguments[1])) : Faults.random();
        System.out.println(run(faults.lastingAtMost(Duration.ofSeconds(6)), duration));
        System.exit(0);
    }

    static Result run(Faults faults, Duration duration) throws Exception {
        Path journals = java.nio.file.Files.createTempDirectory("pglock-checker");
        try (RestartableServer server = RestartableServer.start(SETTINGS);
                TestDatabase database = server.server().newDatabase()) {
            return new Checker(faults, server, database, journals).run(duration);
        }
    }

    private Result run(Duration duration) throws Exception {
        database.execute(LeaseSchema.ddl(Jvm.TABLE));
        database.execute(TABLES);
        for (String name : CheckedReplica.NAMES) {
            database.execute("INSERT INTO counter (name) VALUES ('" + name + "')");
        }
        try {
            for (int i = 0; i < REPLICAS; i++) {
                replicas.add(new Replica("replica " + i));
            }
            await(() -> history.allBegunSince(Instant.EPOCH));
            plan();
            int struck = faults.strike(duration);
            Instant last = Instant.now();
            boolean recovered = await(() -> history.allBegunSince(last));
            replicas.forEach(Replica::terminate);
            history.read();
            return result(struck, last, recovered);
        } finally {
            replicas.forEach(Replica::close);
        }
    }

    private interface Condition {
        boolean holds() throws IOException;
    }

    private static boolean await(Condition condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.holds()) {
            if (System.nanoTime() - end > 0) {
                return false;
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
        return true;
    }

    private Result result(int struck, Instant last, boolean recovered) {
        return new Result(
                faults.seed(),
                struck,
                history.size(),
                database.number(COMMITS, CheckedReplica.FENCED),
                database.number(LOST_UPDATES, CheckedReplica.FENCED),
                database.number(LATE_COMMITS, CheckedReplica.FENCED),
                database.number(COMMITS_OUT_OF_ORDER, CheckedReplica.FENCED),
                database.number(LOST_UPDATES, CheckedReplica.UNFENCED),
                history.overlaps(),
                Map.of(
                        LockStrategy.LEASE, history.longestOverlap(LockStrategy.LEASE),
                        LockStrategy.ADVISORY, history.longestOverlap(LockStrategy.ADVISORY)),
                history.longestIdleSince(last),
                recovered);
    }

    // ---- faults

    private void plan() {
        Random random = new Random(faults.seed());
        for (Replica replica : replicas) {
            faults.add(replica.label + "'s network", () -> replica.disturb(random), replica.proxy::resume)
                    .add(replica.label + " frozen", replica::freeze, replica::thaw)
                    .add(replica.label + " killed", replica::kill, replica::start);
        }
        faults.add("locks' sessions terminated", () -> terminate("pglock:%"))
                .add("work's sessions terminated", () -> terminate(CheckedReplica.WORK))
                .add("server stopped", server::stop, server::restart)
                .add("server crashed", this::crash, server::restart);
        ConnectionHog[] hog = new ConnectionHog[1];
        faults.add(
                "connections exhausted",
                () -> hog[0] =
                        unlessStopped(() -> ConnectionHog.on(database, database.username(), database.password())),
                () -> {
                    if (hog[0] != null) {
                        hog[0].close();
                    }
                });
    }

    private void crash() {
        if (server.isRunning()) {
            server.crash();
        }
    }

    private void terminate(String applicationName) {
        Object ignored = unlessStopped(() -> database.terminate(applicationName));
    }

    /** Another fault may keep us from it. */
    private static <T> T unlessStopped(java.util.function.Supplier<T> action) {
        try {
            return action.get();
        } catch (IllegalStateException e) {
            System.out.println("  not possible now: " + e.getMessage());
            return null;
        }
    }

    /** One replica, in one JVM after the other. */
    private final class Replica implements AutoCloseable {

        private final String label;
        private final TcpProxy proxy = TcpProxy.to(server.server());
        private int life;
        private ChildJvm process;
        private Journal journal;

        Replica(String label) throws IOException {
            this.label = label;
            start();
        }

        void start() throws IOException {
            journal = history.add(new Journal(journals.resolve(label.replace(' ', '-') + "." + life++)));
            process = new Jvm(database.url(proxy), database.username(), database.password(), label)
                    .start(CheckedReplica.class, journal.file().toString());
        }

        void disturb(Random random) {
            switch (random.nextInt(7)) {
                case 0 -> proxy.cut();
                case 1 -> proxy.stall(Way.TO_SERVER);
                case 2 -> proxy.stall(Way.TO_CLIENT);
                case 3 -> proxy.drop(random.nextBoolean() ? Way.TO_SERVER : Way.TO_CLIENT);
                case 4 -> proxy.delay(Duration.ofMillis(random.nextInt(200)));
                case 5 -> proxy.refuse();
                default -> proxy.stall();
            }
        }

        void freeze() {
            process.freeze();
            journal.frozen();
        }

        void thaw() {
            journal.thawed();
            process.thaw();
        }

        void kill() {
            process.kill();
            journal.ended();
        }

        void terminate() {
            process.terminate();
            try {
                if (!process.awaitEnd(PATIENCE)) {
                    throw new IllegalStateException(label + " does not end");
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            journal.ended();
        }

        @Override
        public void close() {
            process.close();
            proxy.close();
        }
    }
}
