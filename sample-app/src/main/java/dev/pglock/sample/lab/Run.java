package dev.pglock.sample.lab;

import org.jspecify.annotations.Nullable;

/**
 * One bar of the time line. Times are the server's, in milliseconds since 1970.
 *
 * @param id of this bar; the same for all that is told of it later
 * @param lock the lock's name
 * @param fence the fence of the tenure
 * @param replica who ran it
 * @param strategy by which strategy the lock was held
 * @param start when the lock was granted
 * @param end when the body ended; null: it has not
 * @param state how it is
 * @param lostAt from when on the lock was its no more
 * @param leaseEnd until when the lease of a replica that died keeps others out
 */
record Run(
        long id,
        String lock,
        long fence,
        String replica,
        String strategy,
        long start,
        @Nullable Long end,
        State state,
        @Nullable Long lostAt,
        @Nullable Long leaseEnd) {

    /** How a run is. */
    enum State {
        RUNNING,
        DONE,
        FAILED,
        LOST,
        DIED
    }

    static Run begun(long id, String lock, long fence, String replica, String strategy, long start) {
        return new Run(id, lock, fence, replica, strategy, start, null, State.RUNNING, null, null);
    }

    Run ended(State how, long at) {
        return new Run(
                this.id,
                this.lock,
                this.fence,
                this.replica,
                this.strategy,
                this.start,
                at,
                how,
                this.lostAt,
                this.leaseEnd);
    }

    Run lost(long at) {
        return new Run(
                this.id,
                this.lock,
                this.fence,
                this.replica,
                this.strategy,
                this.start,
                this.end,
                State.LOST,
                at,
                this.leaseEnd);
    }

    Run leased(long until) {
        return new Run(
                this.id,
                this.lock,
                this.fence,
                this.replica,
                this.strategy,
                this.start,
                this.end,
                this.state,
                this.lostAt,
                until);
    }

    boolean isRunning() {
        return this.state == State.RUNNING;
    }
}
