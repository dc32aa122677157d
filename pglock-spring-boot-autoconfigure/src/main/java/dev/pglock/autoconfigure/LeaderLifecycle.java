package dev.pglock.autoconfigure;

import dev.pglock.LeaderElection;
import dev.pglock.leader.LeaderElections;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.springframework.context.SmartLifecycle;

/**
 * Stands for election when everything else is up, and steps down before anything else is taken down: before the web server
 * drains its requests and the schedulers wait for their tasks, so that another replica leads at once.
 */
final class LeaderLifecycle implements SmartLifecycle {

    /** After the web server, which is at {@code DEFAULT_PHASE - 2048} and {@code - 1024}, and all schedulers. */
    static final int PHASE = SmartLifecycle.DEFAULT_PHASE - 512;

    private final LeaderElections elections;
    private final Map<String, PgLockProperties.Leader> roles;
    private final Duration grace;

    private volatile boolean running;

    /** @param phaseTimeout what the container grants a phase: listeners that take longer are not waited for */
    LeaderLifecycle(LeaderElections elections, Map<String, PgLockProperties.Leader> roles, Duration phaseTimeout) {
        this.elections = elections;
        this.roles = roles;
        this.grace = phaseTimeout.minus(phaseTimeout.dividedBy(10));
    }

    @Override
    public int getPhase() {
        return PHASE;
    }

    @Override
    public void start() {
        running = true;
        for (LeaderElection election : elections.all()) {
            PgLockProperties.Leader configured = roles.get(election.role());
            if (configured == null || configured.autoStart()) {
                election.start();
            }
        }
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public void stop() {
        CountDownLatch stopped = new CountDownLatch(1);
        stop(stopped::countDown);
        try {
            boolean ignored = stopped.await(grace.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** All at the same time: their listeners share the time of this phase. */
    @Override
    public void stop(Runnable callback) {
        running = false;
        List<LeaderElection> open =
                elections.all().stream().filter(LeaderElection::isRunning).toList();
        if (open.isEmpty()) {
            callback.run();
            return;
        }
        List<Thread> stopping = open.stream().map(this::stop).toList();
        Thread last = new Thread(
                () -> {
                    try {
                        for (Thread one : stopping) {
                            one.join();
                        }
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    } finally {
                        callback.run();
                    }
                },
                "pglock-stop-leaders");
        last.setDaemon(true);
        last.start();
    }

    private Thread stop(LeaderElection election) {
        Thread thread = new Thread(
                () -> {
                    boolean ignored = election.stop(grace);
                },
                "pglock-stop-leader-" + election.role());
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
