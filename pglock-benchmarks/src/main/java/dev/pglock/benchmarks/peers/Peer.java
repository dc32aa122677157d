package dev.pglock.benchmarks.peers;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** One replica that takes locks. Thread-safe. */
public interface Peer extends AutoCloseable {

    /** A lock that is held. */
    interface Held {
        void unlock() throws Exception;
    }

    /** One attempt; null when somebody else holds the lock. */
    @Nullable
    Held tryLock(String name) throws Exception;

    /** Waits until it has the lock. */
    Held lock(String name) throws Exception;

    /** Says for all of them that they are still in use. */
    void renew(List<Held> held) throws Exception;

    @Override
    void close() throws Exception;
}
