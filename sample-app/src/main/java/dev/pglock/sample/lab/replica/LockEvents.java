package dev.pglock.sample.lab.replica;

import dev.pglock.Acquisition;
import dev.pglock.Denial;
import dev.pglock.LockHandle;
import dev.pglock.LockListener;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.LossReason;
import dev.pglock.RunOutcome;
import dev.pglock.TenureEnd;
import java.time.Duration;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** Tells the lab what happens to this replica's locks. */
@Component
@Profile("lab")
class LockEvents implements LockListener {

    private final Pipe lab;

    LockEvents(Pipe lab) {
        this.lab = lab;
    }

    @Override
    public void acquired(LockHandle lock) {
        tell("TAKE", lock, "at", lock.acquiredAt().toEpochMilli());
    }

    @Override
    public void denied(Denial denial) {
        this.lab.tell(
                "DENIED",
                "lock",
                denial.name(),
                "reason",
                denial.reason().name(),
                "detail",
                denial.describe(),
                "fence",
                denial.fence());
    }

    @Override
    public void settled(Acquisition acquisition) {
        if (acquisition.outcome() == Acquisition.Outcome.HELD) {
            this.lab.tell("SKIPPED", "lock", acquisition.request().name());
        }
    }

    @Override
    public void released(LockHandle lock, RunOutcome outcome) {
        tell("RELEASE", lock, "outcome", outcome.name());
    }

    @Override
    public void lost(LockHandle lock, LossReason reason) {
        tell("LOST", lock, "reason", reason.name());
    }

    @Override
    public void ended(LockHandle lock, TenureEnd end) {
        tell("ENDED", lock, "outcome", end.outcome().name());
    }

    @Override
    public void heartbeat(LockStrategy strategy, boolean succeeded, Duration took) {
        if (succeeded && strategy == LockStrategy.ADVISORY) {
            this.lab.tell("HEARTBEAT", "strategy", strategy.name());
        }
    }

    @Override
    public void outageBegan(LockStrategy strategy, LockStorageException cause) {
        this.lab.tell("OUTAGE", "strategy", strategy.name(), "detail", "the database cannot be reached");
    }

    @Override
    public void outageEnded(LockStrategy strategy, Duration lasted) {
        this.lab.tell(
                "BACK",
                "strategy",
                strategy.name(),
                "detail",
                "the database answers again after " + lasted.toMillis() + " ms");
    }

    private void tell(String kind, LockHandle lock, String name, Object value) {
        this.lab.tell(
                kind,
                "lock",
                lock.name(),
                "fence",
                lock.fence(),
                "strategy",
                lock.strategy().name(),
                name,
                value);
    }
}
