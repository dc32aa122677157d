package dev.pglock.sample.lab.replica;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** Does what the lab asks for: {@code migrate}, or {@code count fenced|unfenced times millis}. */
@Component
@Profile("lab")
class Commands implements DisposableBean {

    private static final Logger log = LoggerFactory.getLogger(Commands.class);

    private final Migration migration;

    private final Counter counter;

    private final Pipe lab;

    private final ExecutorService executor = Executors.newCachedThreadPool();

    Commands(Migration migration, Counter counter, Pipe lab) {
        this.migration = migration;
        this.counter = counter;
        this.lab = lab;
        lab.onCommand(words -> this.executor.execute(() -> run(words)));
    }

    private void run(String[] words) {
        try {
            switch (words[0]) {
                case "migrate" -> {
                    this.migration.migrate();
                    this.lab.tell("RETURNED", "lock", Migration.LOCK);
                }
                case "count" -> count(words[1].equals("fenced"), Integer.parseInt(words[2]), Long.parseLong(words[3]));
                default -> log.warn("The lab asks for {}, which is not known here", words[0]);
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException ex) {
            log.warn("{} failed", words[0], ex);
            this.lab.tell("FAILED", "detail", words[0] + ": " + ex.getMessage());
        }
    }

    private void count(boolean fenced, int times, long millis) throws InterruptedException {
        for (int i = 0; i < times; i++) {
            if (fenced) {
                this.counter.countFenced(millis);
            } else {
                this.counter.countUnfenced(millis);
            }
        }
    }

    @Override
    public void destroy() {
        this.executor.shutdownNow();
    }
}
