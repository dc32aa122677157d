package dev.pglock.testing;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/** A virtual thread, by reflection: tests are compiled for a JDK that has none. From JDK 21 on. */
public final class VirtualThreads {

    private VirtualThreads() {}

    /** Work that may fail. */
    public interface Work<T> {
        T run() throws Exception;
    }

    /** Work under way. */
    public static final class Running<T> {

        private final AtomicReference<T> result = new AtomicReference<>();
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private final AtomicBoolean interrupted = new AtomicBoolean();
        private final Thread thread;

        private Running(Work<T> work) throws ReflectiveOperationException {
            Runnable all = () -> {
                try {
                    result.set(work.run());
                } catch (Throwable e) {
                    failure.set(e);
                }
                interrupted.set(Thread.currentThread().isInterrupted());
            };
            thread = (Thread)
                    Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, all);
        }

        /** Interrupts it once. */
        public void interrupt() {
            thread.interrupt();
        }

        /** Interrupts it again and again until its work is done. */
        public void interruptUntilItEnds(long everyMillis) throws InterruptedException {
            do {
                thread.interrupt();
                thread.join(everyMillis);
            } while (thread.isAlive());
        }

        /** Its result, when it has one. */
        public T result() throws InterruptedException {
            thread.join();
            if (failure.get() != null) {
                throw new AssertionError("The work of a virtual thread failed", failure.get());
            }
            return result.get();
        }

        /** Whether it was interrupted when its work was done. */
        public boolean endedInterrupted() throws InterruptedException {
            thread.join();
            return interrupted.get();
        }
    }

    /** Starts work on one. */
    public static <T> Running<T> start(Work<T> work) throws ReflectiveOperationException {
        return new Running<>(work);
    }
}
