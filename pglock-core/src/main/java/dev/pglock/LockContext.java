package dev.pglock;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The locks under which the calling thread runs, innermost first. It tells a body about its own lock; it is no proof of
 * ownership, which rests on the handle alone. Nothing stays on a thread after its bodies have ended.
 */
public final class LockContext {

    private static final ThreadLocal<@Nullable Deque<LockHandle>> STACK = new ThreadLocal<>();

    private LockContext() {}

    /**
     * The innermost lock of the running method.
     *
     * @return its handle
     * @throws IllegalStateException if the calling thread runs under no lock
     */
    public static LockHandle current() {
        Deque<LockHandle> stack = STACK.get();
        if (stack == null) {
            throw new IllegalStateException(
                    "No lock is held by the running method: it was called on another thread, or past its proxy "
                            + "(this.method()), or configuration has switched its lock off");
        }
        return stack.getFirst();
    }

    /**
     * The innermost lock of the running method, for methods that also run without one: where configuration has switched
     * locking off, say.
     *
     * @return its handle, or nothing
     */
    public static Optional<LockHandle> currentIfAny() {
        Deque<LockHandle> stack = STACK.get();
        return stack == null ? Optional.empty() : Optional.of(stack.getFirst());
    }

    /**
     * All locks under which the calling thread runs.
     *
     * @return their handles, innermost first
     */
    public static List<LockHandle> all() {
        Deque<LockHandle> stack = STACK.get();
        return stack == null ? List.of() : List.copyOf(stack);
    }

    /**
     * The innermost lock of that name under which the calling thread runs, held or lost.
     *
     * @param name the lock's name
     * @return its handle, or null
     */
    public static @Nullable LockHandle find(String name) {
        Deque<LockHandle> stack = STACK.get();
        if (stack == null) {
            return null;
        }
        String normal = LockNames.normalise(name);
        for (LockHandle lock : stack) {
            if (lock.name().equals(normal)) {
                return lock;
            }
        }
        return null;
    }

    /**
     * Throws unless the calling thread runs under the lock of that name and the lock is still held: a method that must
     * never run without its lock calls this first. It finds the call that went past the proxy ({@code this.method()}).
     *
     * @param name the lock's name
     * @return its handle
     * @throws LockNotAcquiredException if the calling thread does not run under that lock
     * @throws LockLostException if it does, but the lock was lost
     */
    public static LockHandle requireHeld(String name) {
        LockHandle lock = find(name);
        if (lock == null) {
            throw new LockNotAcquiredException(
                    name,
                    null,
                    "Lock '" + name + "' is required but not held by the running method: it was called on another "
                            + "thread, or past its proxy (this.method()), or is not annotated");
        }
        lock.ensureHeld();
        return lock;
    }

    /**
     * Marks the calling thread as running under the lock until the scope is closed. For code that runs bodies;
     * {@link LockHandle#execute} does it by itself.
     *
     * @param lock the lock
     * @return to be closed on the same thread, also when scopes are closed out of order
     */
    public static Scope enter(LockHandle lock) {
        Deque<LockHandle> stack = STACK.get();
        if (stack == null) {
            stack = new ArrayDeque<>(2);
            STACK.set(stack);
        }
        stack.addFirst(lock);
        return new Scope(lock);
    }

    /** Ends what {@link #enter} began. */
    public static final class Scope implements AutoCloseable {

        private final LockHandle lock;

        private Scope(LockHandle lock) {
            this.lock = lock;
        }

        @Override
        public void close() {
            Deque<LockHandle> stack = STACK.get();
            if (stack == null) {
                return;
            }
            stack.removeFirstOccurrence(lock);
            if (stack.isEmpty()) {
                STACK.remove();
            }
        }
    }
}
