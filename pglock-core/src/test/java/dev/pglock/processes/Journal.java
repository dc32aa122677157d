package dev.pglock.processes;

import dev.pglock.LockStrategy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * What one process did, in a file, because the database may not be there to be told: when its bodies began, and when they
 * ended or heard of their loss. By the clock of the machine, which all processes share.
 */
final class Journal {

    /**
     * A body that ran under a lock.
     *
     * @param end when it ended or was told that its lock is lost; null: it has not, as far as we know
     */
    record Body(
            Journal journal,
            String name,
            LockStrategy strategy,
            long fence,
            Instant begin,
            @Nullable Instant end) {

        Body endingAt(Instant moment) {
            return end == null ? new Body(journal, name, strategy, fence, begin, moment) : this;
        }
    }

    private record Frozen(Instant from, Instant to) {}

    private final Path file;
    private final List<Frozen> frozen = new CopyOnWriteArrayList<>();
    private volatile @Nullable Instant frozenSince;
    private volatile @Nullable Instant ended;

    Journal(Path file) {
        this.file = file;
    }

    Path file() {
        return file;
    }

    // ---- what the process writes

    /** Writes down the beginnings and ends. Thread-safe. */
    static final class Log {

        private final Writer writer;

        Log(Path file) throws IOException {
            this.writer = Files.newBufferedWriter(file);
        }

        void begun(String name, LockStrategy strategy, long fence) {
            line("begun", name, strategy.name(), fence);
        }

        void ended(String name, LockStrategy strategy, long fence) {
            line("ended", name, strategy.name(), fence);
        }

        private void line(String what, String name, String strategy, long fence) {
            synchronized (writer) {
                try {
                    writer.write(String.join(";", what, name, strategy, "" + fence, Instant.now() + "\n"));
                    writer.flush();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }

    // ---- what is done to it

    void frozen() {
        frozenSince = Instant.now();
    }

    void thawed() {
        Instant since = frozenSince;
        if (since != null) {
            frozen.add(new Frozen(since, Instant.now()));
            frozenSince = null;
        }
    }

    void ended() {
        thawed();
        ended = Instant.now();
    }

    // ---- what came of it

    List<Body> bodies() throws IOException {
        Map<Long, Body> bodies = new HashMap<>();
        String all = Files.exists(file) ? Files.readString(file) : "";
        // Somebody who is killed does not finish his line.
        for (String line : all.substring(0, all.lastIndexOf('\n') + 1).lines().toList()) {
            String[] words = line.split(";");
            Instant at = Instant.parse(words[4]);
            long fence = Long.parseLong(words[3]);
            if (words[0].equals("begun")) {
                bodies.put(fence, new Body(this, words[1], LockStrategy.valueOf(words[2]), fence, at, null));
            } else {
                bodies.computeIfPresent(fence, (key, body) -> body.endingAt(at));
            }
        }
        Instant end = ended;
        return new ArrayList<>(
                end == null
                        ? bodies.values()
                        : bodies.values().stream()
                                .map(body -> body.endingAt(end))
                                .toList());
    }

    /** How long it was frozen in that time. */
    Duration frozenBetween(Instant from, Instant to) {
        Duration sum = Duration.ZERO;
        for (Frozen f : frozen) {
            Instant begin = f.from().isAfter(from) ? f.from() : from;
            Instant end = f.to().isBefore(to) ? f.to() : to;
            if (begin.isBefore(end)) {
                sum = sum.plus(Duration.between(begin, end));
            }
        }
        return sum;
    }
}
