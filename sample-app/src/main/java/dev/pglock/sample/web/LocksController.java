package dev.pglock.sample.web;

import dev.pglock.LockInfo;
import dev.pglock.LockRegistry;
import dev.pglock.sample.Runs;
import dev.pglock.sample.Runs.Run;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Who holds what, and who ran what. Any replica can answer: it is read from the database. */
@RestController
class LocksController {

    private static final int RUNS = 20;

    private final LockRegistry locks;

    private final Runs runs;

    private final String replica;

    LocksController(LockRegistry locks, Runs runs, @Value("${pglock.instance-id}") String replica) {
        this.locks = locks;
        this.runs = runs;
        this.replica = replica;
    }

    @GetMapping("/locks")
    Overview locks() {
        return new Overview(this.replica, this.locks.findAll(), this.runs.latest(RUNS));
    }

    /**
     * What the page shows.
     *
     * @param replica who answers
     */
    record Overview(String replica, List<LockInfo> locks, List<Run> runs) {}
}
