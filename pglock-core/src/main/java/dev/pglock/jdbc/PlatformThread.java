package dev.pglock.jdbc;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.sql.SQLException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Keeps interrupts from connections. When a virtual thread is interrupted while it reads from a socket, the socket is closed,
 * and with the session that carries the locks of a replica all of them would be lost. What must be carried through is
 * therefore done by a platform thread, for which the virtual one waits; a platform thread does it itself.
 *
 * <p>There are never more threads than sessions that are spoken to at the same moment, because whoever waits for his turn on
 * a session does that himself. They end when they have had nothing to do for a second. Nobody has to close them, so that
 * a release finds one even after its store was closed.
 *
 * @see <a
 *     href="https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/net/Socket.html#getInputStream()">Socket</a>
 */
public final class PlatformThread {

    /** Null before JDK 21. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtualIfKnown();

    private static final ExecutorService POOL = new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), PlatformThread::daemon);

    private PlatformThread() {}

    /**
     * What speaks to the server.
     *
     * @param <T> what it results in
     */
    @FunctionalInterface
    public interface Call<T extends @Nullable Object> {

        /**
         * Speaks to it.
         *
         * @return the result
         * @throws SQLException if that failed
         */
        T make() throws SQLException;
    }

    /**
     * Makes a call that no interrupt of the calling thread may end. Blocks until it has been made; an interrupt does not get
     * lost.
     *
     * @param call must limit its time itself, and rest on no {@link ThreadLocal}
     * @param <T> what it results in
     * @return the call's result
     * @throws SQLException as the call does
     */
    public static <T extends @Nullable Object> T call(Call<T> call) throws SQLException {
        if (!isVirtual(Thread.currentThread())) {
            return call.make();
        }
        FutureTask<T> task = new FutureTask<>(call::make);
        POOL.execute(task);
        try (DeferredInterrupt interrupt = new DeferredInterrupt()) {
            return resultOf(task, interrupt);
        }
    }

    private static <T extends @Nullable Object> T resultOf(FutureTask<T> task, DeferredInterrupt interrupt)
            throws SQLException {
        while (true) {
            boolean ignored = interrupt.take();
            try {
                return task.get();
            } catch (InterruptedException e) {
                interrupt.seen();
            } catch (ExecutionException e) {
                throw rethrown(e.getCause());
            }
        }
    }

    /** As if it had been thrown here: whoever reads its trace looks for the caller. */
    private static SQLException rethrown(@Nullable Throwable failure) {
        if (failure == null) {
            return new SQLException("A call failed without a reason");
        }
        failure.setStackTrace(
                Stream.of(failure.getStackTrace(), Thread.currentThread().getStackTrace())
                        .flatMap(Stream::of)
                        .toArray(StackTraceElement[]::new));
        if (failure instanceof RuntimeException unchecked) {
            throw unchecked;
        }
        if (failure instanceof Error error) {
            throw error;
        }
        return failure instanceof SQLException sql ? sql : new SQLException(failure);
    }

    /** Nothing of the first caller's is inherited by the calls of others. */
    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(null, work, "pglock-session", 0, false);
        thread.setContextClassLoader(PlatformThread.class.getClassLoader());
        thread.setDaemon(true);
        return thread;
    }

    private static boolean isVirtual(Thread thread) {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable e) {
            throw new IllegalStateException("A thread must know what it is", e);
        }
    }

    private static @Nullable MethodHandle isVirtualIfKnown() {
        try {
            return MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException e) {
            // Byte code is that of an older JDK, which need not have any.
            return null;
        }
    }
}
