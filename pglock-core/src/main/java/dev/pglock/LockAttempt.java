package dev.pglock;

/** The answer to one attempt to take a lock: granted with a handle, or denied with a reason. */
public sealed interface LockAttempt {

    /**
     * The lock was granted.
     *
     * @param lock the handle; the caller must release it, or let {@link LockHandle#execute} do so
     */
    record Granted(LockHandle lock) implements LockAttempt {}

    /**
     * The lock was not granted. Nothing was written and nothing needs to be released.
     *
     * @param denial why
     */
    record Denied(Denial denial) implements LockAttempt {}
}
