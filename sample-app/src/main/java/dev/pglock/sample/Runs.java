package dev.pglock.sample;

import dev.pglock.LockContext;
import dev.pglock.LockHandle;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Component;

/** Which replica ran what: the sample's own book, so that nobody has to take the locks' word for it. */
@Component
public class Runs {

    private static final Logger log = LoggerFactory.getLogger(Runs.class);

    private final JdbcClient jdbc;

    private final String replica;

    Runs(JdbcClient jdbc, @Value("${pglock.instance-id}") String replica) {
        this.jdbc = jdbc;
        this.replica = replica;
    }

    /** Runs the work and writes down when it began and ended. A run whose replica died has no end. */
    public <E extends Exception> void record(Work<E> work) throws E {
        LockHandle lock = LockContext.current();
        log.info("Replica {} runs {} (fence {})", this.replica, lock.name(), lock.fence());
        long id = this.jdbc
                .sql("INSERT INTO run (job, replica, fence) VALUES (:job, :replica, :fence) RETURNING id")
                .param("job", lock.name())
                .param("replica", this.replica)
                .param("fence", lock.fence())
                .query(Long.class)
                .single();
        try {
            work.run();
        } finally {
            this.jdbc
                    .sql("UPDATE run SET finished_at = clock_timestamp() WHERE id = :id")
                    .param("id", id)
                    .update();
        }
        log.info("Replica {} has finished {}", this.replica, lock.name());
    }

    public List<Run> latest(int count) {
        return this.jdbc
                .sql("SELECT job, replica, fence, started_at, finished_at FROM run ORDER BY id DESC LIMIT :count")
                .param("count", count)
                .query((row, number) -> new Run(
                        row.getString("job"),
                        row.getString("replica"),
                        row.getLong("fence"),
                        row.getTimestamp("started_at").toInstant(),
                        instant(row.getTimestamp("finished_at"))))
                .list();
    }

    private static @Nullable Instant instant(java.sql.@Nullable Timestamp timestamp) {
        return timestamp == null ? null : timestamp.toInstant();
    }

    /** One run of a job; all instants are the database's. */
    public record Run(
            String job,
            String replica,
            long fence,
            Instant startedAt,
            @Nullable Instant finishedAt) {}

    /** A job's body. */
    @FunctionalInterface
    public interface Work<E extends Exception> {

        void run() throws E;
    }
}
