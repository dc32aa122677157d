package dev.pglock.processes;

import dev.pglock.CommitFence;
import dev.pglock.LockException;
import dev.pglock.LockHandle;
import dev.pglock.LockLostException;
import dev.pglock.LockRequest;
import dev.pglock.LockStrategy;
import dev.pglock.engine.LockEngine;
import dev.pglock.testing.TestDatabase;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * One of the replicas of {@link Checker}: takes each lock as often as it can, and works under it. Under a lease, that is
 * adding 1 to a counter by reading, waiting and writing. It goes on until it is asked to end.
 */
final class CheckedReplica {

    static final String FENCED = "fenced";
    static final String UNFENCED = "unfenced";
    static final List<String> NAMES = List.of(FENCED + " 1", FENCED + " 2", UNFENCED, "advisory 1", "advisory 2");
    static final String WORK = "work";

    /** By it the server forgets a client that has vanished, but not one that was frozen for a while. */
    private static final String BUSINESS = "?socketTimeout=2&connectTimeout=2&loginTimeout=3&ApplicationName=" + WORK
            + "&options=-c%20idle_in_transaction_session_timeout=10s%20-c%20lock_timeout=1s";

    private static final AtomicBoolean ENDING = new AtomicBoolean();

    private final Jvm jvm;
    private final LockEngine engine;
    private final CommitFence fence;
    private final Journal.Log log;

    private CheckedReplica(Jvm jvm, Journal.Log log) {
        this.jvm = jvm;
        this.engine = jvm.engine();
        this.fence = engine.commitFence();
        this.log = log;
    }

    public static void main(String[] arguments) throws Exception {
        CheckedReplica replica = new CheckedReplica(Jvm.of(arguments), new Journal.Log(Path.of(arguments[4])));
        List<Thread> threads = new ArrayList<>();
        for (String name : NAMES) {
            Thread thread = new Thread(() -> replica.compete(name), name);
            threads.add(thread);
            thread.start();
        }
        Jvm.atEnd(ENDING, threads, replica.engine::close);
    }

    private void compete(String name) {
        LockStrategy strategy = name.startsWith("advisory") ? LockStrategy.ADVISORY : LockStrategy.LEASE;
        Random random = new Random();
        try (Work work = new Work(name)) {
            while (!ENDING.get()) {
                LockRequest request =
                        LockRequest.of(name).strategy(strategy).waitTimeout(Duration.ofMillis(random.nextInt(2000)));
                try {
                    LockHandle lock = engine.acquire(request);
                    hold(lock, Duration.ofMillis(random.nextInt(random.nextInt(10) == 0 ? 5000 : 500)), work);
                } catch (LockException | InterruptedException e) {
                    // Lost, not had, not found out: next time.
                }
            }
        }
    }

    private void hold(LockHandle lock, Duration atMost, Work work) throws InterruptedException {
        lock.onLost(() -> log.ended(lock.name(), lock.strategy(), lock.fence()));
        long end = System.nanoTime() + atMost.toNanos();
        lock.execute(() -> {
            log.begun(lock.name(), lock.strategy(), lock.fence());
            try {
                while (System.nanoTime() - end < 0 && !Thread.currentThread().isInterrupted() && !ENDING.get()) {
                    if (lock.strategy() == LockStrategy.LEASE) {
                        work.increment(lock);
                    }
                    TimeUnit.MILLISECONDS.sleep(10);
                }
                return null;
            } finally {
                log.ended(lock.name(), lock.strategy(), lock.fence());
            }
        });
    }

    /** Transactions on a connection that is replaced when it breaks. */
    private final class Work implements AutoCloseable {

        private final String name;
        private final Random random = new Random();
        private @Nullable Connection connection;

        Work(String name) {
            this.name = name;
        }

        void increment(LockHandle lock) throws InterruptedException {
            try {
                Connection business = connection();
                long value =
                        Long.parseLong(TestDatabase.text(business, "SELECT value FROM counter WHERE name = ?", name));
                TimeUnit.MILLISECONDS.sleep(random.nextInt(20));
                TestDatabase.text(
                        business,
                        "UPDATE counter SET value = ?::bigint WHERE name = ? RETURNING value",
                        value + 1,
                        name);
                // In the same transaction: whether its commit came through needs no answer.
                TestDatabase.text(
                        business,
                        "INSERT INTO increment VALUES (?, ?, ?, ?) RETURNING value",
                        name,
                        lock.fence(),
                        lock.acquiredAt().atOffset(ZoneOffset.UTC),
                        value + 1);
                if (name.startsWith(FENCED)) {
                    fence.check(business, lock);
                }
                business.commit();
            } catch (SQLException | LockException | InterruptedException e) {
                close();
                if (e instanceof LockLostException lost) {
                    throw lost;
                }
                if (e instanceof InterruptedException interrupted) {
                    throw interrupted;
                }
            }
        }

        private Connection connection() throws SQLException {
            Connection open = connection;
            if (open == null) {
                open = DriverManager.getConnection(jvm.url() + BUSINESS, jvm.username(), jvm.password());
                open.setAutoCommit(false);
                connection = open;
            }
            return open;
        }

        /** Which rolls back. */
        @Override
        public void close() {
            Connection open = connection;
            connection = null;
            if (open != null) {
                try {
                    open.close();
                } catch (SQLException e) {
                    // It was broken.
                }
            }
        }
    }
}
