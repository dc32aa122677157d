package dev.pglock.sample.postgres;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/**
 * A lock between processes. It dies with its process, which is the reason to use it: nothing has to be cleaned up after
 * {@code kill -9}.
 *
 * <p>On POSIX systems closing any channel of a file drops every lock which the JVM has on it: open each file once.
 */
final class LockFile implements AutoCloseable {

    private final FileChannel channel;

    private @Nullable FileLock lock;

    private LockFile(FileChannel channel) {
        this.channel = channel;
    }

    static LockFile open(Path file) throws IOException {
        return new LockFile(
                FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE));
    }

    /** Blocks until nobody else has it. */
    void lock() throws IOException {
        this.lock = this.channel.lock();
    }

    /** Blocks until nobody else has it exclusively. */
    void lockShared() throws IOException {
        this.lock = this.channel.lock(0, Long.MAX_VALUE, true);
    }

    boolean tryLock() throws IOException {
        this.lock = this.channel.tryLock();
        return this.lock != null;
    }

    void unlock() throws IOException {
        if (this.lock != null) {
            this.lock.release();
            this.lock = null;
        }
    }

    @Override
    public void close() {
        try {
            this.channel.close();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
