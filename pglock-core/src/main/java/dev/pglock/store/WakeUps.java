package dev.pglock.store;

/**
 * Tells those who wait for a lock that it may be free. It may tell too often, or too late; polling alone is correct.
 * Thread-safe.
 */
public interface WakeUps extends AutoCloseable {

    /** Tells nobody anything: polling alone. */
    WakeUps NONE = new WakeUps() {
        @Override
        public boolean areOn() {
            return false;
        }

        @Override
        public Watch watch(long key, Waiter waiter) {
            return () -> {};
        }

        @Override
        public void close() {
            // There is nothing to close.
        }
    };

    /** Who waits. Both methods may be called at any time, from any thread, and return at once. */
    interface Waiter {

        /** From now on releases are told. One that was before has been told to nobody: ask again. */
        void watched();

        /** Somebody has released the lock. */
        void released();
    }

    /** One wait, until it is closed. */
    @FunctionalInterface
    interface Watch extends AutoCloseable {

        @Override
        void close();
    }

    /**
     * Whether a release is told to whoever watches, as a rule. Then there is no need to poll often.
     *
     * @return false: nobody will be told anything
     */
    boolean areOn();

    /**
     * Begins to watch a lock. Never blocks: the waiter is told when it is watched.
     *
     * @param key the lock's advisory key
     * @param waiter who is to be told
     * @return to be closed when the wait is over
     */
    Watch watch(long key, Waiter waiter);

    /** Tells nobody anything any more. Takes a moment at most. Idempotent. */
    @Override
    void close();

    /**
     * The 32 bits by which waiters and releasers know each other on the server. Two names that share them cost each other
     * a wake-up, nothing else.
     *
     * @param key a lock's advisory key
     * @return the second half of the key on which who waits is announced
     */
    static int waitKey(long key) {
        return Long.hashCode(key);
    }
}
