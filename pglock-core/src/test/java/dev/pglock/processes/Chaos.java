package dev.pglock.processes;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LockTimeoutException;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Three JVMs with ten threads each take, wait for, hold and release twenty locks by both strategies, while one JVM after
 * the other is killed and started again. What they did, they write down by the server's clock. Arguments: for how long,
 * such as {@code PT1H} (20 s by default).
 */
final class Chaos {

    private static final int JVMS = 3;
    private static final int THREADS = 10;
    private static final int NAMES = 20;

    private static final String TABLES = """
            CREATE TABLE wait (id bigserial PRIMARY KEY, replica text NOT NULL, name text NOT NULL, blocks boolean NOT NULL,
                               began timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz, granted boolean);
            CREATE TABLE hold (id bigserial PRIMARY KEY, replica text NOT NULL, name text NOT NULL, strategy text NOT NULL,
                               fence bigint NOT NULL, began timestamptz NOT NULL DEFAULT clock_timestamp(),
                               ended timestamptz, kept boolean);
            CREATE TABLE kill (replica text NOT NULL, sent timestamptz NOT NULL,
                               at timestamptz NOT NULL DEFAULT clock_timestamp());
            CREATE TABLE failure (replica text NOT NULL, what text NOT NULL);
            -- What a killed holder of an advisory lock had sent may be carried out when the lock is already free: what began
            -- before the kill was sent, it had.
            CREATE VIEW tenure AS
              SELECT h.* FROM hold h LEFT JOIN kill k USING (replica)
              WHERE h.ended IS NOT NULL OR h.strategy = 'LEASE' OR (h.began < k.sent) IS NOT FALSE;
            -- From the end of one tenure to the next; after a kill from there, if that ended it. Whoever is killed right after
            -- he has written down the end may not have released the lock any more.
            CREATE VIEW gap AS
              SELECT h.name, h.replica, h.strategy, coalesce(h.ended, k.at) AS begins,
                     (h.ended < k.sent - interval '500 ms') IS FALSE OR h.ended IS NULL AS killed,
                     lead(h.began, 1, 'infinity') OVER (PARTITION BY h.name ORDER BY h.fence) AS ends,
                     lead(h.replica) OVER (PARTITION BY h.name ORDER BY h.fence) AS next_replica
              FROM hold h LEFT JOIN kill k USING (replica);
            -- The part of a wait in which the lock was free, as far as we know: a replica that was killed while it asked may
            -- have been granted the lock without having written it down.
            CREATE VIEW idle AS
              SELECT gap.*, extract(epoch FROM least(gap.ends, w.ended) - greatest(gap.begins, w.began)) AS seconds
              FROM gap JOIN wait w ON w.name = gap.name AND w.blocks AND w.began < gap.ends AND w.ended > gap.begins
              WHERE NOT EXISTS (SELECT FROM wait asked JOIN kill k USING (replica)
                                WHERE asked.name = gap.name AND asked.ended IS NULL AND asked.began < gap.ends
                                  AND k.at + interval '%d s' > gap.begins AND k.at - interval '1 s' < least(gap.ends, w.ended))
            """.formatted(Jvm.LEASE.toSeconds() + 1);

    /** Somebody began while another who never lost his lock held it. Of those who were killed the end is not known. */
    private static final String OVERLAPS = """
            SELECT count(*) FROM tenure a JOIN tenure b USING (name)
            WHERE a.id <> b.id AND a.kept AND b.began >= a.began AND b.began < a.ended AND (b.began, b.id) > (a.began, a.id)
            """;

    private static final String FENCES_NOT_GREATER = """
            SELECT count(*) FROM (SELECT fence <= lag(fence) OVER (PARTITION BY name ORDER BY began, id) AS wrong
                                  FROM tenure) AS h WHERE wrong
            """;

    private static final String LONGEST_WAIT = "SELECT coalesce(max(seconds), 0) FROM idle WHERE ";

    private static final String SLOWEST = """
            SELECT DISTINCT ON (seconds, name) format('%s s for %s from %s (%s) to %s', round(seconds, 3), name, replica,
                                                       strategy, next_replica) AS line, seconds
            FROM idle WHERE NOT killed ORDER BY seconds DESC LIMIT 5
            """;

    /** Where somebody on another replica waited before the end. */
    private static final String HAND_OVER = """
            SELECT coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM gap.ends - gap.begins)), 0)
            FROM gap JOIN wait w ON w.name = gap.name AND w.replica = gap.next_replica AND w.blocks AND w.granted
                     AND w.began < gap.begins AND w.ended BETWEEN gap.ends AND gap.ends + interval '50 ms'
            WHERE NOT gap.killed AND gap.replica <> gap.next_replica
            """;

    private Chaos() {}

    /**
     * What came of it.
     *
     * @param tenures how many there were
     * @param waits how many tenures were waited for, and how many waits ended without one
     * @param lost how many tenures were lost otherwise than by a kill
     * @param longestWait for a lock that was released, in seconds
     * @param longestAfterKill for an advisory lock whose holder was killed, in seconds
     * @param longestLease for a lease whose holder was killed, in seconds
     * @param handOver from one replica to one that waits, in the middle, in seconds
     */
    record Result(
            long tenures,
            long waits,
            long timeouts,
            long kills,
            long lost,
            long overlaps,
            long fencesNotGreater,
            double longestWait,
            double longestAfterKill,
            double longestLease,
            double handOver,
            List<String> slowest,
            List<String> failures) {}

    public static void main(String[] arguments) throws Exception {
        System.out.println(run(Duration.parse(arguments.length == 0 ? "PT20S" : arguments[0])));
        System.exit(0);
    }

    static Result run(Duration duration) throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            database.execute(TABLES);
            long until = System.nanoTime() + duration.toNanos();
            List<Running> replicas = new ArrayList<>();
            try {
                for (int i = 0; i < JVMS; i++) {
                    replicas.add(Running.first(database, "jvm" + i));
                }
                while (System.nanoTime() < until) {
                    TimeUnit.MILLISECONDS.sleep(ThreadLocalRandom.current().nextInt(1500, 4000));
                    int victim = ThreadLocalRandom.current().nextInt(JVMS);
                    replicas.set(victim, replicas.get(victim).killedAndReplaced(database));
                }
            } finally {
                replicas.forEach(replica -> replica.process().terminate());
                for (Running replica : replicas) {
                    boolean ignored = replica.process().awaitEnd(Duration.ofSeconds(30));
                    replica.process().close();
                }
            }
            return result(database);
        }
    }

    private record Running(String name, int life, ChildJvm process) {

        static Running first(TestDatabase database, String name) {
            return start(database, name, 0);
        }

        private static Running start(TestDatabase database, String name, int life) {
            return new Running(name, life, Jvm.start(Replica.class, database, name + "#" + life));
        }

        Running killedAndReplaced(TestDatabase database) {
            String sent = database.text("SELECT clock_timestamp()");
            process.kill();
            database.execute("INSERT INTO kill VALUES ('" + name + "#" + life + "', '" + sent + "')");
            return start(database, name, life + 1);
        }
    }

    private static Result result(TestDatabase database) throws SQLException {
        return new Result(
                database.number("SELECT count(*) FROM hold"),
                database.number("SELECT count(*) FROM wait WHERE blocks AND granted"),
                database.number("SELECT count(*) FROM wait WHERE blocks AND NOT granted"),
                database.number("SELECT count(*) FROM kill"),
                database.number("SELECT count(*) FROM hold WHERE NOT kept"),
                database.number(OVERLAPS),
                database.number(FENCES_NOT_GREATER),
                seconds(database, LONGEST_WAIT + "NOT killed"),
                seconds(database, LONGEST_WAIT + "killed AND strategy = 'ADVISORY'"),
                seconds(database, LONGEST_WAIT + "killed AND strategy = 'LEASE'"),
                seconds(database, HAND_OVER),
                lines(database, SLOWEST),
                lines(database, "SELECT replica || ': ' || what AS line FROM failure LIMIT 5"));
    }

    private static List<String> lines(TestDatabase database, String sql) {
        String lines = database.text("SELECT string_agg(line, '; ') FROM (" + sql + ") AS l");
        return lines == null ? List.of() : List.of(lines.split("; "));
    }

    private static double seconds(TestDatabase database, String sql) {
        return Double.parseDouble(String.valueOf(database.text(sql)));
    }

    /** One of the JVMs. It goes on until it is killed, or asked to end. */
    static final class Replica {

        private static final String END_OF_WAIT =
                "UPDATE wait SET ended = clock_timestamp(), granted = ? WHERE id = ?::bigint";

        private static final AtomicBoolean ENDING = new AtomicBoolean();

        private final Jvm jvm;
        private final LockEngine engine;

        private Replica(Jvm jvm) {
            this.jvm = jvm;
            this.engine = jvm.engine();
        }

        public static void main(String[] arguments) throws Exception {
            Replica replica = new Replica(Jvm.of(arguments));
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Thread thread = new Thread(replica::work, "worker-" + i);
                threads.add(thread);
                thread.start();
            }
            Jvm.atEnd(ENDING, threads, () -> {});
        }

        private void work() {
            try (Connection notes = jvm.direct()) {
                while (!ENDING.get()) {
                    try {
                        turn(notes);
                    } catch (LockStorageException | IllegalStateException e) {
                        note(notes, "INSERT INTO failure VALUES (?, ?)", jvm.label(), e.toString());
                    }
                }
            } catch (SQLException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        private void turn(Connection notes) throws SQLException, InterruptedException {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            LockStrategy strategy = random.nextBoolean() ? LockStrategy.LEASE : LockStrategy.ADVISORY;
            LockRequest request = LockRequest.of("name " + random.nextInt(NAMES))
                    .strategy(strategy)
                    .waitTimeout(Duration.ofMillis(random.nextInt(100, 4000)));
            boolean blocks = random.nextInt(4) > 0;
            String wait = TestDatabase.text(
                    notes,
                    "INSERT INTO wait (replica, name, blocks) VALUES (?, ?, ?) RETURNING id",
                    jvm.label(),
                    request.name(),
                    blocks);
            LockHandle lock =
                    blocks ? await(request) : engine.tryAcquire(request).orElse(null);
            if (lock == null) {
                note(notes, END_OF_WAIT, false, wait);
            } else {
                hold(notes, wait, lock, Duration.ofMillis(random.nextInt(random.nextInt(10) == 0 ? 1000 : 100)));
            }
            TimeUnit.MILLISECONDS.sleep(random.nextInt(50));
        }

        private @Nullable LockHandle await(LockRequest request) throws InterruptedException {
            try {
                return engine.acquire(request);
            } catch (LockTimeoutException e) {
                return null;
            }
        }

        private void hold(Connection notes, String wait, LockHandle lock, Duration duration)
                throws SQLException, InterruptedException {
            try (lock) {
                String id = TestDatabase.text(
                        notes,
                        "INSERT INTO hold (replica, name, strategy, fence) VALUES (?, ?, ?, ?) RETURNING id",
                        jvm.label(),
                        lock.name(),
                        lock.strategy().name(),
                        lock.fence());
                note(notes, END_OF_WAIT, true, wait);
                TimeUnit.MILLISECONDS.sleep(duration.toMillis());
                note(
                        notes,
                        "UPDATE hold SET ended = clock_timestamp(), kept = ? WHERE id = ?::bigint",
                        lock.isHeld(),
                        id);
            }
        }

        private static void note(Connection notes, String sql, Object... values) throws SQLException {
            try (PreparedStatement statement = notes.prepareStatement(sql)) {
                for (int i = 0; i < values.length; i++) {
                    statement.setObject(i + 1, values[i]);
                }
                int ignored = statement.executeUpdate();
            }
        }
    }
}
