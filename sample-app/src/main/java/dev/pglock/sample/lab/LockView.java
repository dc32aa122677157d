package dev.pglock.sample.lab;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A lock as the page shows it. Times are the server's, in milliseconds since 1970.
 *
 * @param name the lock's name
 * @param strategy {@code LEASE} or {@code ADVISORY}
 * @param state as {@link dev.pglock.LockState}
 * @param holder who holds it, or held it
 * @param fence of the last tenure
 * @param since when it began
 * @param until when it ends unless it is renewed
 * @param data the payload
 * @param lastTick the last tick that was run
 * @param lastHolder who ran it last to the end
 * @param lastFinished when that was
 * @param lastOutcome and how
 * @param completed the versions that have succeeded
 * @param paused why it is paused
 * @param waiting who waits for it
 */
record LockView(
        String name,
        String strategy,
        String state,
        @Nullable String holder,
        @Nullable Long fence,
        @Nullable Long since,
        @Nullable Long until,
        @Nullable String data,
        @Nullable Long lastTick,
        @Nullable String lastHolder,
        @Nullable Long lastFinished,
        @Nullable String lastOutcome,
        List<String> completed,
        @Nullable String paused,
        List<String> waiting) {

    boolean isHeld() {
        return this.state.equals("HELD");
    }

    boolean isHeldBy(String replica) {
        return isHeld() && replica.equals(this.holder);
    }

    /** The same, locked by another strategy. */
    LockView by(String other) {
        return new LockView(
                this.name,
                other,
                this.state,
                this.holder,
                this.fence,
                this.since,
                this.until,
                this.data,
                this.lastTick,
                this.lastHolder,
                this.lastFinished,
                this.lastOutcome,
                this.completed,
                this.paused,
                this.waiting);
    }
}
