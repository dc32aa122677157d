package dev.pglock.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import dev.pglock.jdbc.ConnectionSource.Lane;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.PostgresServer;
import dev.pglock.testing.TcpProxy;
import dev.pglock.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class OwnConnectionsTests {

    private static final String HOUSEKEEPING = "com.zaxxer.hikari.housekeeping.periodMs";
    private static final Duration BUDGET = Duration.ofSeconds(5);
    private static final JdbcTimeouts TIMEOUTS = JdbcTimeouts.of(Duration.ofSeconds(2));

    private final TestDatabase database = PostgresServer.shared().newDatabase();
    private OwnConnections connections = connections(2);

    private OwnConnections connections(int size) {
        return connections(size, () -> ConnectionSpec.of(database.url(), database.username(), database.password()));
    }

    private static OwnConnections connections(int size, Supplier<ConnectionSpec> specs) {
        return connections(size, specs, TIMEOUTS);
    }

    private static OwnConnections connections(int size, Supplier<ConnectionSpec> specs, JdbcTimeouts timeouts) {
        return new OwnConnections(new SessionFactory(specs, SessionSettings.of("orders", "pod-1", timeouts)), size);
    }

    @AfterEach
    void close() {
        connections.close();
        database.close();
    }

    private long sessions() {
        return database.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pglock:orders:pod-1'"
                + " AND datname = current_database()");
    }

    private static String ask(ConnectionSource source, Lane lane, String sql) throws SQLException {
        return source.run(lane, BUDGET, (connection, unanswered) -> TestDatabase.text(connection, sql));
    }

    @Test
    void nothingIsOpenedBeforeItIsNeeded() throws Exception {
        assertThat(sessions()).isZero();

        ask(connections, Lane.WORK, "SELECT 1");

        assertThat(sessions()).isEqualTo(1);
    }

    @Test
    void betweenTwoPiecesOfWorkTheSessionIsIdleWithoutATransaction() throws Exception {
        ask(connections, Lane.WORK, "SELECT 1");

        await().untilAsserted(() -> assertThat(database.text(
                        "SELECT state || coalesce(xact_start::text, '') || coalesce(backend_xmin::text, '')"
                                + " FROM pg_stat_activity WHERE application_name = 'pglock:orders:pod-1'"
                                + " AND datname = current_database()"))
                .isEqualTo("idle"));
    }

    @Test
    void nobodyKeepsTheHeartbeatFromItsConnection() throws Exception {
        CountDownLatch busy = new CountDownLatch(3);
        CountDownLatch done = new CountDownLatch(1);
        for (int i = 0; i < 3; i++) {
            CompletableFuture<Void> ignored = CompletableFuture.runAsync(
                    () -> {
                        busy.countDown();
                        try {
                            connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
                                awaitOrFail(done);
                                return true;
                            });
                        } catch (SQLException e) {
                            throw new AssertionError(e);
                        }
                    },
                    OwnConnectionsTests::onNewThread);
        }
        assertThat(busy.await(10, TimeUnit.SECONDS)).isTrue();

        long begun = System.nanoTime();
        assertThat(ask(connections, Lane.HEARTBEAT, "SELECT 1")).isEqualTo("1");
        assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
        assertThat(sessions()).isLessThanOrEqualTo(2);
        done.countDown();
    }

    @Test
    void whoFindsAllInUseIsToldInTime() throws Exception {
        connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
            long begun = System.nanoTime();
            CompletableFuture<SQLException> other = CompletableFuture.supplyAsync(
                    () -> {
                        try {
                            connections.run(Lane.WORK, Duration.ofMillis(200), (c, u) -> true);
                            throw new AssertionError("there is no second connection for work");
                        } catch (SQLException e) {
                            return e;
                        }
                    },
                    OwnConnectionsTests::onNewThread);
            assertThat((Throwable) other.join()).hasMessageContaining("pglock.datasource.pool-size");
            assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(2));
            return true;
        });
    }

    /** Queueing is no failure of the connection that is queued for: nothing has been sent into it. */
    @Test
    void mostOfTheTimeMayBeSpentOnWaitingForAConnection() throws Exception {
        Duration budget = Duration.ofSeconds(4);
        ask(connections, Lane.WORK, "SELECT 1");
        CountDownLatch taken = new CountDownLatch(1);
        CompletableFuture<String> first = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return connections.run(Lane.WORK, budget, (connection, unanswered) -> {
                            taken.countDown();
                            awaitOrFail(budget.multipliedBy(7).dividedBy(10));
                            return "first";
                        });
                    } catch (SQLException e) {
                        throw new AssertionError(e);
                    }
                },
                OwnConnectionsTests::onNewThread);
        awaitOrFail(taken);

        String second = connections.run(
                Lane.WORK, budget, (connection, unanswered) -> TestDatabase.text(connection, "SELECT 2"));

        assertThat(second).isEqualTo("2");

        assertThat(first.join()).isEqualTo("first");
    }

    @Test
    void thereAreNeverMoreThanTheSize() throws Exception {
        AtomicInteger most = new AtomicInteger();
        OwnConnections three = connections(3);
        try {
            Concurrently.run(10, thread -> () -> {
                for (int i = 0; i < 20; i++) {
                    Lane lane = thread % 3 == 0 ? Lane.HEARTBEAT : Lane.WORK;
                    String sessions = three.run(
                            lane,
                            BUDGET,
                            (connection, unanswered) -> String.valueOf(TestDatabase.text(
                                    connection,
                                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pglock:%'"
                                            + " AND datname = current_database()")));
                    most.accumulateAndGet(Integer.parseInt(sessions), Math::max);
                }
                return null;
            });
            assertThat(most.get()).isBetween(1, 3);
        } finally {
            three.close();
        }
    }

    @Test
    void idleConnectionsAreClosed() throws Exception {
        // The pool looks for idle ones every 30 seconds; not in this test.
        System.setProperty(HOUSEKEEPING, "500");
        OwnConnections observed = connections(2);
        System.clearProperty(HOUSEKEEPING);
        try {
            ask(observed, Lane.WORK, "SELECT 1");
            assertThat(sessions()).isEqualTo(1);

            await().atMost(Duration.ofSeconds(13)).until(() -> sessions() == 0);

            ask(observed, Lane.WORK, "SELECT 1");
        } finally {
            observed.close();
        }
    }

    @Test
    void aRotatedPasswordIsUsedForTheNextConnection() throws Exception {
        String role = database.server().newRole();
        AtomicReference<String> password = new AtomicReference<>(role);
        // Time is not what this is about: passwords take some to check, on a busy machine.
        OwnConnections rotating = connections(
                2,
                () -> ConnectionSpec.of(database.url(), role, password.get()),
                JdbcTimeouts.of(Duration.ofSeconds(30)));
        try {
            assertThat(ask(rotating, Lane.WORK, "SELECT current_user")).isEqualTo(role);
            database.execute("ALTER ROLE " + role + " PASSWORD 'rotated'");
            assertThat(ask(rotating, Lane.WORK, "SELECT 1")).isEqualTo("1");
            database.terminate("pglock:%");
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> ask(rotating, Lane.WORK, "SELECT 1"))
                    .withMessageContaining("password authentication failed")
                    .withMessageNotContaining("rotated");

            password.set("rotated");

            assertThat(ask(rotating, Lane.WORK, "SELECT current_user")).isEqualTo(role);
        } finally {
            rotating.close();
        }
    }

    @Test
    void theDriversPropertiesAreCarriedOver() throws Exception {
        database.execute("CREATE SCHEMA orders");
        OwnConnections special = connections(
                1,
                () -> new ConnectionSpec(
                        database.url(),
                        database.username(),
                        database.password(),
                        Map.of("currentSchema", "orders", "ApplicationName", "theirs", "readOnly", "true")));
        try {
            assertThat(ask(special, Lane.WORK, "SELECT current_schema()")).isEqualTo("orders");
            assertThat(ask(special, Lane.WORK, "SHOW application_name")).isEqualTo("pglock:orders:pod-1");
            assertThat(ask(special, Lane.WORK, "SHOW transaction_read_only")).isEqualTo("off");
        } finally {
            special.close();
        }
    }

    @Test
    void workThatBrokeOffIsToldSoWhenItIsDoneAgain() throws Exception {
        ask(connections, Lane.WORK, "SELECT 1");
        StringBuilder told = new StringBuilder();

        String pid = connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
            told.append(unanswered).append(' ');
            if (!unanswered) {
                return String.valueOf(TestDatabase.text(connection, "SELECT pg_terminate_backend(pg_backend_pid())"));
            }
            return "done";
        });

        assertThat(pid).isEqualTo("done");
        assertThat(told).hasToString("false true ");
    }

    @Test
    void workIsDoneTwiceAtMost() {
        AtomicInteger times = new AtomicInteger();

        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
                    times.incrementAndGet();
                    return TestDatabase.text(connection, "SELECT pg_terminate_backend(pg_backend_pid())");
                }));

        assertThat(times.get()).isEqualTo(2);
    }

    @Test
    void aConflictIsTriedAgainAFewTimes() throws Exception {
        AtomicInteger times = new AtomicInteger();

        connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
            assertThat(unanswered).isFalse();
            if (times.incrementAndGet() < 4) {
                throw new SQLException("could not serialize access", "40001");
            }
            return true;
        });

        assertThat(times.get()).isEqualTo(4);
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> connections.run(Lane.WORK, BUDGET, (connection, unanswered) -> {
                    throw new SQLException("deadlock detected", "40P01");
                }));
    }

    @Test
    void otherFailuresAreReportedAndTheConnectionIsKept() throws Exception {
        String pid = ask(connections, Lane.WORK, "SELECT pg_backend_pid()");
        for (String wrong : List.of("SELECT 1/0", "SELECT x FROM nowhere", "SELECT pg_sleep(3)")) {
            assertThatExceptionOfType(SQLException.class).isThrownBy(() -> ask(connections, Lane.WORK, wrong));
        }
        assertThat(ask(connections, Lane.WORK, "SELECT pg_backend_pid()")).isEqualTo(pid);
    }

    @Test
    void anInterruptNeitherStopsTheWorkNorGetsLost() throws Exception {
        Thread.currentThread().interrupt();

        assertThat(ask(connections, Lane.WORK, "SELECT 1")).isEqualTo("1");

        assertThat(Thread.interrupted()).isTrue();
    }

    /** Into a network that holds everything up for a while, so that the interrupt comes while a connection is opened. */
    @Test
    void anInterruptWhileAConnectionIsOpenedNeitherStopsTheWorkNorGetsLost() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            Supplier<ConnectionSpec> spec =
                    () -> ConnectionSpec.of(database.url(proxy), database.username(), database.password());
            OwnConnections slow = connections(2, spec);
            SessionFactory sessions = new SessionFactory(spec, SessionSettings.of("orders", "pod-1", TIMEOUTS));
            for (SqlWork<String> way : List.<SqlWork<String>>of(
                    (none, unanswered) -> ask(slow, Lane.WORK, "SELECT 1"), (none, unanswered) -> {
                        try (Connection session = sessions.open(BUDGET)) {
                            return TestDatabase.text(session, "SELECT 1");
                        }
                    })) {
                proxy.stall();
                Thread worker = Thread.currentThread();
                onNewThread(() -> {
                    await().until(() -> worker.getState() == Thread.State.TIMED_WAITING);
                    worker.interrupt();
                    await().until(() -> !worker.isInterrupted());
                    proxy.resume();
                });

                assertThat(way.run(database.direct(), false)).isEqualTo("1");
                assertThat(Thread.interrupted()).isTrue();
            }
            slow.close();
        }
    }

    @Test
    void afterALongOutageTheFirstWorkIsDoneAtOnce() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            OwnConnections own = connections(
                    2, () -> ConnectionSpec.of(database.url(proxy), database.username(), database.password()));
            proxy.refuse();
            long outage = System.nanoTime();
            while (System.nanoTime() - outage < TimeUnit.SECONDS.toNanos(6)) {
                assertThatExceptionOfType(SQLException.class).isThrownBy(() -> ask(own, Lane.WORK, "SELECT 1"));
                Thread.sleep(20);
            }
            proxy.resume();
            long back = System.nanoTime();

            assertThat(ask(own, Lane.WORK, "SELECT 1")).isEqualTo("1");

            assertThat(Duration.ofNanos(System.nanoTime() - back)).isLessThan(Duration.ofSeconds(1));
            long opened = proxy.connections();
            for (int i = 0; i < 5; i++) {
                assertThat(ask(own, Lane.WORK, "SELECT 1")).isEqualTo("1");
            }
            assertThat(proxy.connections()).as("no doubt is left").isEqualTo(opened);
            own.close();
        }
    }

    /** A connection that is found broken is replaced at once or not at all: the pool would try for longer. */
    @Test
    void whoseConnectionBreaksWhenNoOtherCanBeHadIsToldInTime() throws Exception {
        try (TcpProxy proxy = TcpProxy.to(database.server())) {
            OwnConnections own = connections(
                    2, () -> ConnectionSpec.of(database.url(proxy), database.username(), database.password()));
            assertThat(ask(own, Lane.WORK, "SELECT 1")).isEqualTo("1");
            proxy.refuse();
            long asked = System.nanoTime();

            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> own.run(
                            Lane.WORK,
                            TIMEOUTS.work(),
                            (connection, unanswered) -> TestDatabase.text(connection, "SELECT 1")));

            assertThat(Duration.ofNanos(System.nanoTime() - asked)).isLessThan(TIMEOUTS.work());
            own.close();
        }
    }

    @Test
    void openingAConnectionIntoABlackHoleEndsInTime() {
        try (TcpProxy hole = TcpProxy.to(database.server())) {
            hole.stall();
            OwnConnections stalled = connections(
                    2, () -> ConnectionSpec.of(database.url(hole), database.username(), database.password()));
            long begun = System.nanoTime();

            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> stalled.run(Lane.WORK, Duration.ofMillis(600), (connection, unanswered) -> true));

            assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofMillis(3900));
            stalled.close();
        }
    }

    @Test
    void closedIsClosed() throws Exception {
        ask(connections, Lane.WORK, "SELECT 1");
        connections.close();
        connections.close();

        await().until(() -> sessions() == 0);
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> ask(connections, Lane.WORK, "SELECT 1"))
                .withMessageContaining("closed");
    }

    @Test
    void noSecretIsShown() {
        ConnectionSpec spec = new ConnectionSpec(
                "jdbc:postgresql://joe:hidden1@host/db?password=hidden2",
                "joe",
                "hidden3",
                Map.of("sslpassword", "hidden4"));

        assertThat(spec.toString()).isEqualTo("ConnectionSpec[jdbc:postgresql://host/db, joe]");
    }

    private static void awaitOrFail(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Work that takes its time. */
    private static void awaitOrFail(Duration time) {
        try {
            Thread.sleep(time.toMillis());
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** The common pool has a single worker on a machine with two cores. */
    private static void onNewThread(Runnable task) {
        new Thread(task).start();
    }
}
