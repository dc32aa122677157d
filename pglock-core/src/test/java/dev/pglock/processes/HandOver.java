package dev.pglock.processes;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.LockEngine;
import dev.pglock.lease.LeaseSchema;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.WakeUps;
import dev.pglock.testing.ChildJvm;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * How long it takes until a lock that was released in one JVM is held in another that waits for it, by the server's clock:
 * from the moment before the release is called to the grant. Arguments: how many times (1,000 by default).
 */
final class HandOver {

    private static final String NAME = "handed over";
    private static final Duration AT_MOST = Duration.ofMinutes(5);

    private HandOver() {}

    /**
     * What was measured.
     *
     * @param count how many hand-overs
     */
    record Result(LockStrategy strategy, long count, Duration p50, Duration p99, Duration longest) {

        @Override
        public String toString() {
            return "%s: %d hand-overs, p50 %.2f ms, p99 %.2f ms, longest %.2f ms"
                    .formatted(strategy, count, millis(p50), millis(p99), millis(longest));
        }

        private static double millis(Duration duration) {
            return duration.toNanos() / 1e6;
        }
    }

    public static void main(String[] arguments) throws Exception {
        int times = arguments.length == 0 ? 1000 : Integer.parseInt(arguments[0]);
        for (LockStrategy strategy : List.of(LockStrategy.LEASE, LockStrategy.ADVISORY)) {
            System.out.println(measure(strategy, times));
        }
        System.exit(0);
    }

    static Result measure(LockStrategy strategy, int times) throws Exception {
        try (TestDatabase database = PostgresServer.shared().newDatabase()) {
            database.execute(LeaseSchema.ddl(Jvm.TABLE));
            database.execute("CREATE TABLE tenure (n serial PRIMARY KEY, label text NOT NULL,"
                    + " acquired_at timestamptz NOT NULL, released_at timestamptz)");
            List<ChildJvm> replicas = new ArrayList<>();
            try {
                for (String label : List.of("A", "B")) {
                    replicas.add(Jvm.start(
                            Replica.class, database, label, strategy.name(), Integer.toString(times / 2 + 1)));
                }
                for (ChildJvm replica : replicas) {
                    if (!replica.awaitEnd(AT_MOST) || replica.exitValue() != 0) {
                        throw new IllegalStateException("A replica has failed");
                    }
                }
            } finally {
                replicas.forEach(ChildJvm::close);
            }
            return result(database, strategy);
        }
    }

    private static Result result(TestDatabase database, LockStrategy strategy) {
        String gaps =
                " FROM (SELECT extract(epoch FROM lead(acquired_at) OVER (ORDER BY n) - released_at) * 1e9 AS gap,"
                        + " label <> lead(label) OVER (ORDER BY n) AS other FROM tenure) AS t WHERE other AND gap IS NOT NULL";
        return new Result(
                strategy,
                database.number("SELECT count(*)" + gaps),
                nanos(database, "percentile_cont(0.5) WITHIN GROUP (ORDER BY gap)" + gaps),
                nanos(database, "percentile_cont(0.99) WITHIN GROUP (ORDER BY gap)" + gaps),
                nanos(database, "max(gap)" + gaps));
    }

    private static Duration nanos(TestDatabase database, String what) {
        return Duration.ofNanos(database.number("SELECT (" + what.replaceFirst(" FROM", ")::bigint FROM")));
    }

    /** One of the two: takes the lock, gives it to the other, and so on. */
    static final class Replica {

        private static final String WAITERS =
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
                        + " AND granted AND objid = '" + WakeUps.waitKey(KeyDerivation.SHA256.key(Jvm.NAMESPACE, NAME))
                        + "'::int::oid";

        private Replica() {}

        public static void main(String[] arguments) throws Exception {
            Jvm jvm = Jvm.of(arguments);
            LockRequest request = LockRequest.of(NAME)
                    .strategy(LockStrategy.valueOf(arguments[4]))
                    .waitTimeout(Duration.ofSeconds(30));
            int times = Integer.parseInt(arguments[5]);
            try (LockEngine engine = jvm.engine();
                    Connection observer = jvm.direct();
                    Statement statement = observer.createStatement()) {
                for (int i = 0; i < times; i++) {
                    try (LockHandle lock = engine.acquire(request)) {
                        OffsetDateTime acquiredAt = lock.acquiredAt().atOffset(ZoneOffset.UTC);
                        String n = TestDatabase.text(
                                observer,
                                "INSERT INTO tenure (label, acquired_at) VALUES (?, ?) RETURNING n",
                                jvm.label(),
                                acquiredAt);
                        // The last one has nobody to give it to.
                        awaitMore(observer, WAITERS, 0, Duration.ofSeconds(3));
                        TimeUnit.MILLISECONDS.sleep(ThreadLocalRandom.current().nextInt(5, 15));
                        statement.execute("UPDATE tenure SET released_at = clock_timestamp() WHERE n = " + n);
                        lock.release();
                        awaitMore(observer, "SELECT max(n) FROM tenure", Long.parseLong(n), Duration.ofSeconds(3));
                    }
                }
            }
            System.exit(0);
        }

        private static void awaitMore(Connection observer, String number, long than, Duration atMost)
                throws SQLException, InterruptedException {
            long until = System.nanoTime() + atMost.toNanos();
            while (Long.parseLong(TestDatabase.text(observer, number)) <= than && System.nanoTime() < until) {
                TimeUnit.MILLISECONDS.sleep(1);
            }
        }
    }
}
