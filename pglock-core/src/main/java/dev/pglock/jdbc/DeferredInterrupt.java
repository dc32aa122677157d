package dev.pglock.jdbc;

import org.jspecify.annotations.Nullable;

/**
 * Keeps interrupts of the calling thread from work that must be carried through, and gives them back at its end. Whatever
 * was ended by one may be begun again.
 */
final class DeferredInterrupt implements AutoCloseable {

    private boolean seen;

    /** Takes away the interrupt that there is, if any; tells whether there was one. */
    boolean take() {
        boolean interrupted = Thread.interrupted();
        seen |= interrupted;
        return interrupted;
    }

    /** One was told by an exception, which took it away. */
    void seen() {
        seen = true;
    }

    /** Whether an interrupt is what ended it. */
    static boolean ended(Throwable failure) {
        for (@Nullable Throwable t = failure; t != null; t = t.getCause()) {
            if (t instanceof InterruptedException) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void close() {
        if (seen) {
            Thread.currentThread().interrupt();
        }
    }
}
