package dev.pglock.sample.lab;

import dev.pglock.LockException;
import dev.pglock.LockInfo;
import dev.pglock.sample.lab.Question.Answer;
import dev.pglock.sample.lab.Question.NotSeen;
import dev.pglock.sample.lab.Question.Progress;
import dev.pglock.sample.lab.Question.Seen;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.dao.DataAccessException;

/** The questions, one at a time. Each leaves the lab as it found it. Thread-safe. */
final class Questions implements AutoCloseable {

    private static final String LONG_JOB = "Reconciliation.reconcile";

    private static final String FENCED_JOB = "ledger.close";

    private static final String SHORT_JOB = "orders.rollup";

    private static final String SWITCHED_JOB = "mail.digest";

    private static final String MIGRATION = "users.migration";

    /** Five seconds or more before the end. */
    private static final Pattern EARLY = Pattern.compile("batch ([2-9]|1\\d) of 40|step [2-6] of 20");

    /** As in application-lab.yml. */
    private static final Duration LEASE = Duration.ofSeconds(4);

    /** The lease, a second until the next tick, and three for a machine that has more to do. */
    private static final Duration TAKE_OVER = LEASE.plusSeconds(4);

    private static final Duration A_RUN = Duration.ofSeconds(40);

    private static final Duration A_START = Duration.ofSeconds(90);

    private final Lab lab;

    private final Map<String, Question> all = new LinkedHashMap<>();

    private final Map<String, Answer> answers = new LinkedHashMap<>();

    private final ReentrantLock answersGuard = new ReentrantLock();

    private final AtomicReference<@Nullable Running> running = new AtomicReference<>();

    private final ExecutorService executor = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "question");
        thread.setDaemon(true);
        return thread;
    });

    Questions(Lab lab) {
        this.lab = lab;
        add(
                "kill",
                "Kill a replica",
                "kill -9 hits the replica that runs " + LONG_JOB + ". Its lease runs out, then another replica runs the"
                        + " job under a greater fence: within 8 seconds, 4 of them the lease.",
                this::kill);
        add(
                "freeze",
                "Freeze and thaw",
                "The replica that runs " + FENCED_JOB
                        + " stops as a machine that is suspended. Another takes over within"
                        + " 8 seconds. Thawed, the first goes on as if nothing had been, and its commit is refused.",
                this::freeze);
        add(
                "cut",
                "Cut the network",
                "The replica that runs " + LONG_JOB
                        + " loses its database in a black hole. It gives the lock up by its own"
                        + " clock before another has it, which is within 8 seconds.",
                this::cut);
        add(
                "terminate",
                "Terminate its backends",
                "pg_terminate_backend ends the sessions of the locks of the replica that runs " + LONG_JOB
                        + ". Nothing is lost: before the lease has ended it is renewed over a new session, under the same"
                        + " fence.",
                this::terminate);
        add(
                "database",
                "Stop and start PostgreSQL",
                "For 6 seconds there is no database. Nothing begins meanwhile. When it is back, every job goes on within"
                        + " 15 seconds, without a restart of anything.",
                true,
                this::database);
        add(
                "stop",
                "Stop in good order",
                "The replica that runs " + LONG_JOB
                        + " is asked to end. It finishes its batch and releases the lock, within 6 seconds. Another has it"
                        + " at its next tick, within 3 more, and nobody waits for a lease to end.",
                this::stop);
        add(
                "migration",
                "Migrate once",
                "All three call " + MIGRATION
                        + " (@RunOnce with a version) at the same time. One runs it, for 3 seconds; the"
                        + " others wait, and return within 10 seconds without running it.",
                this::migration);
        add(
                "counter-fenced",
                "Count, with fenced commits",
                "Three replicas count under @Singleton, by reading, waiting and writing in a transaction. One is frozen"
                        + " between reading and writing. Its commit is refused: the counter equals the number of commits.",
                progress -> count(true, progress));
        add(
                "counter-unfenced",
                "Count, without them",
                "The same, but written outside of a transaction, where nothing can be fenced. What the frozen replica"
                        + " writes when it wakes up undoes what the others have counted.",
                progress -> count(false, progress));
        add(
                "strategy",
                "Switch the strategy",
                SWITCHED_JOB
                        + " goes from lease to advisory, or back, while replicas are restarted one after the other."
                        + " It runs on throughout, and no two runs overlap, by the job's own book.",
                this::strategy);
        add(
                "pause",
                "Pause and resume",
                SHORT_JOB
                        + " is paused. For 7 seconds, two of its ticks, all replicas are denied. Resumed, it runs again"
                        + " within 6 seconds.",
                this::pause);
    }

    private void add(String id, String title, String expects, Question.Act act) {
        add(id, title, expects, false, act);
    }

    private void add(String id, String title, String expects, boolean needsOwnDatabase, Question.Act act) {
        this.all.put(id, new Question(id, title, expects, needsOwnDatabase, act));
    }

    List<Question> all() {
        return List.copyOf(this.all.values());
    }

    /** The latest answers. */
    List<Answer> answers() {
        this.answersGuard.lock();
        try {
            return List.copyOf(this.answers.values());
        } finally {
            this.answersGuard.unlock();
        }
    }

    @Nullable
    Running running() {
        return this.running.get();
    }

    /** Begins to answer a question; false if another is being answered. */
    boolean ask(String id) {
        Question question = question(id);
        Running begun = new Running(id, "Waiting until all replicas are up", System.currentTimeMillis());
        if (!this.running.compareAndSet(null, begun)) {
            return false;
        }
        this.executor.execute(() -> {
            Answer answer = answer(question);
            this.answersGuard.lock();
            try {
                this.answers.remove(id);
                this.answers.put(id, answer);
            } finally {
                this.answersGuard.unlock();
            }
            this.running.set(null);
        });
        return true;
    }

    /** Answers a question on this thread. */
    Answer answer(String id) {
        return answer(question(id));
    }

    private Question question(String id) {
        Question question = this.all.get(id);
        if (question == null) {
            throw new LabException("There is no question " + id + ".");
        }
        if (question.needsOwnDatabase() && !this.lab.database().isOurs()) {
            throw new LabException("The lab does not stop a PostgreSQL that it has not started.");
        }
        return question;
    }

    private Answer answer(Question question) {
        try {
            allUp();
            Seen seen = question.act()
                    .run(step -> this.running.updateAndGet(
                            now -> now == null ? null : new Running(now.question(), step, now.since())));
            return new Answer(question.id(), true, seen.sentence(), seen.tookMillis());
        } catch (NotSeen ex) {
            return new Answer(question.id(), false, String.valueOf(ex.getMessage()), null);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            return new Answer(question.id(), false, "The lab was stopped.", null);
        } catch (LabException | DataAccessException | LockException ex) {
            return new Answer(question.id(), false, "It could not be done: " + ex.getMessage(), null);
        }
    }

    // ---- the questions

    private Seen kill(Progress progress) throws InterruptedException {
        Holder holder = aHolder(LONG_JOB, progress);
        long began = System.nanoTime();
        long mark = board().mark();
        try {
            progress.say("Replica " + holder.name() + " is killed; its lease has to end");
            holder.replica().kill();
            LabEvent taken = takeOver(holder, mark);
            long took = millisSince(began);
            return new Seen(
                    "Killed on " + holder.name() + ", taken by " + taken.replica() + " after " + seconds(took)
                            + ", fence " + holder.fence() + " → " + taken.fence() + ".",
                    took);
        } finally {
            restart(holder.replica(), progress);
        }
    }

    private Seen freeze(Progress progress) throws InterruptedException {
        Holder holder = aHolder(FENCED_JOB, progress);
        long began = System.nanoTime();
        long mark = board().mark();
        LabEvent taken;
        try {
            progress.say("Replica " + holder.name() + " is frozen; its lease has to end");
            holder.replica().freeze();
            taken = takeOver(holder, mark);
        } finally {
            holder.replica().thaw();
        }
        long took = millisSince(began);
        progress.say("Thawed, " + holder.name() + " goes on to its commit");
        LabEvent refused = seen(
                board().await(
                                mark,
                                A_RUN,
                                event -> event.fenceOrZero() == holder.fence()
                                        && (event.is("REFUSED", FENCED_JOB) || event.is("COMMITTED", FENCED_JOB))),
                "The thawed replica did not come to its commit.");
        long committed = count("SELECT count(*) FROM lab_ledger WHERE fence = " + holder.fence());
        if (!refused.kind().equals("REFUSED") || committed != 0) {
            throw new NotSeen("The frozen replica has committed under fence " + holder.fence() + ".");
        }
        return new Seen(
                "Frozen on " + holder.name() + ", taken by " + taken.replica() + " after " + seconds(took) + ", fence "
                        + holder.fence() + " → " + taken.fence() + ". Thawed, " + holder.name()
                        + " tried to commit and was refused.",
                took);
    }

    private Seen cut(Progress progress) throws InterruptedException {
        Holder holder = aHolder(LONG_JOB, progress);
        long began = System.nanoTime();
        long mark = board().mark();
        try {
            progress.say("The network of " + holder.name() + " is cut");
            holder.replica().cut();
            LabEvent lost = seen(
                    board().await(mark, TAKE_OVER, event -> event.is("LOST", LONG_JOB) && event.isOf(holder.name())),
                    "The replica that was cut off did not give up its lock within 8 seconds.");
            LabEvent taken = takeOver(holder, mark);
            long took = millisSince(began);
            if (lost.at() > taken.at()) {
                throw new NotSeen("Another had the lock before " + holder.name() + " gave it up.");
            }
            return new Seen(
                    holder.name() + " gave up by its own clock, " + seconds(taken.at() - lost.at()) + " before "
                            + taken.replica() + " took over, " + seconds(took) + " after the cut.",
                    took);
        } finally {
            holder.replica().mend();
        }
    }

    private Seen terminate(Progress progress) throws InterruptedException {
        Holder holder = aHolder(LONG_JOB, progress);
        long began = System.nanoTime();
        long mark = board().mark();
        int ended = this.lab.terminateSessions(holder.name());
        if (ended == 0) {
            throw new NotSeen("Replica " + holder.name() + " had no session.");
        }
        // Read afterwards: what is later than this was renewed over a new session.
        long until = this.lab
                .registry()
                .find(LONG_JOB)
                .map(LockInfo::expiresAt)
                .map(Instant::toEpochMilli)
                .orElse(0L);
        progress.say("The sessions are gone; the lease has to be renewed over a new one");
        LockView renewed = seen(
                board().await(
                                // It may be seen later; that it is in time is told by the fence.
                                LEASE.plusSeconds(3),
                                () -> board().lock(LONG_JOB)
                                        .filter(row -> row.isHeldBy(holder.name())
                                                && row.fence() != null
                                                && row.fence() == holder.fence()
                                                && row.until() != null
                                                && row.until() > until)),
                "The lease was not renewed under the same fence.");
        long took = millisSince(began);
        if (board().eventsAfter(mark).stream().anyMatch(event -> event.kind().equals("LOST"))) {
            throw new NotSeen("A lock was lost.");
        }
        return new Seen(
                ended + " sessions ended. " + renewed.holder() + " renewed its lease over a new one after "
                        + seconds(took) + ", still under fence " + holder.fence() + ".",
                took);
    }

    private Seen database(Progress progress) throws InterruptedException {
        LabEvent ignored = seen(
                board().await(board().mark(), A_RUN, event -> event.is("RELEASE", SHORT_JOB)), "No job runs at all.");
        progress.say("PostgreSQL is stopped for 6 seconds");
        this.lab.stopDatabase();
        long stopped = board().now();
        long mark = board().mark();
        try {
            // What began before may be told after.
            Optional<LabEvent> begun = board().await(
                            mark, Duration.ofSeconds(6), event -> event.kind().equals("TAKE") && event.at() > stopped);
            if (begun.isPresent()) {
                throw new NotSeen(begun.get().lock() + " began without a database.");
            }
        } finally {
            this.lab.startDatabase();
        }
        long began = System.nanoTime();
        long back = board().mark();
        progress.say("PostgreSQL is back; every job has to go on");
        for (String job : List.of(SHORT_JOB, LONG_JOB, FENCED_JOB, SWITCHED_JOB)) {
            Duration left = Duration.ofSeconds(15).minusMillis(millisSince(began));
            LabEvent unusedTake = seen(
                    board().await(back, left, event -> event.is("TAKE", job)),
                    job + " did not go on within 15 seconds.");
        }
        long took = millisSince(began);
        return new Seen(
                "Nothing began in 6 seconds without a database. All four jobs went on within " + seconds(took)
                        + " of its return.",
                took);
    }

    private Seen stop(Progress progress) throws InterruptedException {
        Holder holder = aHolder(LONG_JOB, progress);
        long began = System.nanoTime();
        long mark = board().mark();
        try {
            progress.say("Replica " + holder.name() + " is asked to end");
            holder.replica().terminate();
            LabEvent released = seen(
                    board().await(
                                    mark,
                                    Duration.ofSeconds(6),
                                    event -> event.is("RELEASE", LONG_JOB) && event.isOf(holder.name())),
                    "It did not release the lock within 6 seconds.");
            LabEvent taken = seen(
                    board().await(
                                    mark,
                                    Duration.ofSeconds(6),
                                    event -> event.is("TAKE", LONG_JOB) && !event.isOf(holder.name())),
                    "Nobody else had the lock.");
            if (taken.at() - released.at() > 3000) {
                throw new NotSeen("Nobody else had the lock within 3 seconds of its release.");
            }
            long took = millisSince(began);
            if (board().eventsAfter(mark).stream()
                    .anyMatch(event -> event.kind().equals("LOST"))) {
                throw new NotSeen("A lock was lost by a stop in good order.");
            }
            return new Seen(
                    holder.name() + " released the lock, " + taken.replica() + " had it "
                            + seconds(Math.max(0, taken.at() - released.at())) + " later, " + seconds(took)
                            + " after the stop was asked for.",
                    took);
        } finally {
            restart(holder.replica(), progress);
        }
    }

    private Seen migration(Progress progress) throws InterruptedException {
        // It is remembered for ever. The lab forgets it as an operator would.
        int ignored = this.lab
                .jdbc()
                .sql("""
                        UPDATE pglock_lease SET completed = '{}', completions = '{}'
                        WHERE namespace = :namespace AND name = :name
                        """)
                .param("namespace", Lab.NAMESPACE)
                .param("name", MIGRATION)
                .update();
        long began = System.nanoTime();
        long mark = board().mark();
        progress.say("All three call it");
        this.lab.replicas().forEach(replica -> replica.command("migrate"));
        List<LabEvent> returned = new ArrayList<>();
        for (Replica replica : this.lab.replicas()) {
            returned.add(seen(
                    board().await(
                                    mark,
                                    Duration.ofSeconds(10),
                                    event -> event.is("RETURNED", MIGRATION) && event.isOf(replica.name())),
                    "The call on " + replica.name() + " did not return within 10 seconds."));
        }
        long took = millisSince(began);
        List<LabEvent> runs = board().eventsAfter(mark).stream()
                .filter(event -> event.is("TAKE", MIGRATION))
                .toList();
        if (runs.size() != 1) {
            throw new NotSeen("It ran " + runs.size() + " times.");
        }
        return new Seen(
                runs.get(0).replica() + " ran it, once; all " + returned.size() + " calls returned within "
                        + seconds(took) + ".",
                took);
    }

    private Seen count(boolean fenced, Progress progress) throws InterruptedException {
        String name = fenced ? "fenced" : "unfenced";
        String lock = "counter." + name;
        int ignored = this.lab
                .jdbc()
                .sql("UPDATE lab_counter SET value = 0 WHERE name = :name")
                .param("name", name)
                .update();
        Replica slow = this.lab.replicas().get(0);
        List<Replica> others =
                this.lab.replicas().subList(1, this.lab.replicas().size());
        long each = 5;
        long began = System.nanoTime();
        long mark = board().mark();
        LabEvent read;
        try {
            progress.say(slow.name() + " reads the counter and is frozen before it writes");
            // Long enough to be frozen in it; and it goes on at once when it wakes up later than that.
            slow.command("count " + name + " 1 3000");
            read = seen(
                    board().await(mark, A_RUN, event -> event.is("READ", lock)),
                    slow.name() + " did not begin to count.");
            slow.freeze();
            progress.say("The others count, each " + each + " times");
            others.forEach(replica -> replica.command("count " + name + " " + each + " 100"));
            Optional<Boolean> counted = board().await(
                            A_RUN,
                            () -> committed(mark, lock) == others.size() * each ? Optional.of(true) : Optional.empty());
            if (counted.isEmpty()) {
                throw new NotSeen("The others did not come to an end.");
            }
        } finally {
            slow.thaw();
        }
        progress.say(slow.name() + " is thawed and writes what it thinks is next");
        LabEvent end = seen(
                board().await(
                                mark,
                                A_RUN,
                                event -> event.fenceOrZero() == read.fenceOrZero()
                                        && (event.is("COMMITTED", lock) || event.is("REFUSED", lock))),
                slow.name() + " did not come to its write.");
        long took = millisSince(began);
        long value = count("SELECT value FROM lab_counter WHERE name = '" + name + "'");
        long commits = committed(mark, lock);
        String sentence = "The counter is " + value + " after " + commits + " writes that succeeded.";
        if (fenced && (value != commits || !end.kind().equals("REFUSED"))) {
            throw new NotSeen(sentence);
        }
        if (!fenced && value >= commits) {
            throw new NotSeen(sentence + " None was lost.");
        }
        return new Seen(
                sentence
                        + (fenced
                                ? " The write of the frozen " + slow.name() + " was refused."
                                : " " + (commits - value) + " of them were undone by the frozen " + slow.name() + "."),
                took);
    }

    private long committed(long mark, String lock) {
        return board().eventsAfter(mark).stream()
                .filter(event -> event.is("COMMITTED", lock))
                .count();
    }

    private Seen strategy(Progress progress) throws InterruptedException {
        boolean toAdvisory = this.lab.replicas().get(0).strategyOfDigest().equals("lease");
        String next = toAdvisory ? "advisory" : "lease";
        long first = count("SELECT coalesce(max(id), 0) FROM run");
        long began = System.nanoTime();
        for (Replica replica : this.lab.replicas()) {
            progress.say("Replica " + replica.name() + " is restarted; then it has " + next + " locks");
            replica.strategyOfDigest(next);
            replica.terminate();
            boolean down = board().await(A_RUN, () -> replica.is("down") ? Optional.of(true) : Optional.empty())
                    .isPresent();
            if (!down) {
                throw new NotSeen("Replica " + replica.name() + " did not stop.");
            }
            restart(replica, progress);
        }
        LabEvent ignored = seen(
                board().await(board().mark(), Duration.ofSeconds(10), event -> event.is("RELEASE", SWITCHED_JOB)),
                SWITCHED_JOB + " did not go on.");
        long took = millisSince(began);
        long runs = count("SELECT count(*) FROM run WHERE job = '" + SWITCHED_JOB + "' AND id > " + first);
        // Each run's beginning and end, by the server's clock, as the job wrote them down itself.
        long overlaps = count("""
                SELECT count(*) FROM run earlier JOIN run later ON later.job = earlier.job AND later.id > earlier.id
                WHERE earlier.job = '%s' AND earlier.id > %d
                  AND later.started_at < coalesce(earlier.finished_at, earlier.started_at)
                """.formatted(SWITCHED_JOB, first));
        if (overlaps > 0) {
            throw new NotSeen(overlaps + " runs overlapped.");
        }
        if (runs < took / 4000) {
            throw new NotSeen("It ran only " + runs + " times in " + seconds(took) + ".");
        }
        return new Seen(
                "Now " + next + " on all three. It ran " + runs + " times meanwhile, and no two runs overlapped.",
                took);
    }

    private Seen pause(Progress progress) throws InterruptedException {
        LabEvent ignored = seen(
                board().await(board().mark(), A_RUN, event -> event.is("RELEASE", SHORT_JOB)),
                SHORT_JOB + " does not run.");
        long began;
        long resumed;
        this.lab.registry().pause(SHORT_JOB, "asked for in the lab");
        try {
            long paused = board().now();
            long mark = board().mark();
            progress.say(SHORT_JOB + " is paused for 7 seconds");
            // A run that began before the pause may be told now.
            Optional<LabEvent> run = board().await(
                            mark, Duration.ofSeconds(7), event -> event.is("TAKE", SHORT_JOB) && event.at() > paused);
            if (run.isPresent()) {
                throw new NotSeen(run.get().replica() + " ran it although it was paused.");
            }
            boolean denied = board().eventsAfter(mark).stream()
                    .anyMatch(event -> event.is("DENIED", SHORT_JOB) && "PAUSED".equals(event.reason()));
            if (!denied) {
                throw new NotSeen("Nobody asked for it in 7 seconds.");
            }
        } finally {
            began = System.nanoTime();
            resumed = board().mark();
            boolean unusedAnswer = this.lab.registry().resume(SHORT_JOB, "asked for in the lab");
        }
        progress.say("It is resumed");
        LabEvent taken = seen(
                board().await(resumed, Duration.ofSeconds(6), event -> event.is("TAKE", SHORT_JOB)),
                "It did not run within 6 seconds.");
        long took = millisSince(began);
        return new Seen(
                "Denied to all for 7 seconds. Resumed, " + taken.replica() + " ran it after " + seconds(took) + ".",
                took);
    }

    // ----

    private record Holder(String job, Replica replica, long fence) {

        String name() {
            return this.replica.name();
        }
    }

    /** Waits for a run that has told of its progress and is not near its end. */
    private Holder aHolder(String job, Progress progress) throws InterruptedException {
        progress.say("Waiting for a run of " + job);
        // What was read before may be of another tenure by now, and a look that was under way has begun before.
        long fresh = board().looks() + 2;
        LockView row = seen(
                board().await(
                                A_RUN,
                                () -> board().lock(job)
                                        .filter(read -> board().looks() >= fresh && isEarlyInItsRun(read))),
                job + " does not run.");
        long fence = row.fence() == null ? 0 : row.fence();
        return new Holder(job, this.lab.replica(String.valueOf(row.holder())), fence);
    }

    private static boolean isEarlyInItsRun(LockView row) {
        return row.isHeld() && row.data() != null && EARLY.matcher(row.data()).matches();
    }

    private LabEvent takeOver(Holder from, long mark) throws InterruptedException {
        LabEvent taken = seen(
                board().await(mark, TAKE_OVER, event -> event.is("TAKE", from.job()) && !event.isOf(from.name())),
                "Nobody took over within 8 seconds.");
        if (taken.fenceOrZero() <= from.fence()) {
            throw new NotSeen("The fence did not grow: " + from.fence() + " → " + taken.fence() + ".");
        }
        return taken;
    }

    private void allUp() throws InterruptedException {
        if (!this.lab.awaitReplicas(A_START)) {
            throw new NotSeen("Not all replicas are up.");
        }
    }

    private void restart(Replica replica, Progress progress) throws InterruptedException {
        progress.say("Replica " + replica.name() + " is started again");
        Optional<Boolean> down = board().await(A_RUN, () -> replica.is("down") ? Optional.of(true) : Optional.empty());
        if (down.isPresent()) {
            replica.start();
        }
        allUp();
    }

    private long count(String sql) {
        return this.lab.jdbc().sql(sql).query(Long.class).single();
    }

    private Board board() {
        return this.lab.board();
    }

    private static <T> T seen(Optional<T> event, String otherwise) {
        return event.orElseThrow(() -> new NotSeen(otherwise));
    }

    private static long millisSince(long began) {
        return (System.nanoTime() - began) / 1_000_000;
    }

    private static String seconds(long millis) {
        return String.format(java.util.Locale.ROOT, "%.1f s", millis / 1000.0);
    }

    @Override
    public void close() {
        this.executor.shutdownNow();
    }

    /**
     * The question that is being answered.
     *
     * @param question its id
     * @param step what is going on
     * @param since milliseconds since 1970, by the lab's clock
     */
    record Running(String question, String step, long since) {}
}
