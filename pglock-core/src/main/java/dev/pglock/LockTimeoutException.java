package dev.pglock;

import java.time.Duration;

/** The lock did not become free within the wait timeout. */
public class LockTimeoutException extends LockNotAcquiredException {

    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param denial the last denial
     * @param waited how long was waited in all, the local queue and the connection included
     */
    public LockTimeoutException(Denial denial, Duration waited) {
        super(
                denial.name(),
                denial.reason(),
                "Lock '" + denial.name() + "' was not acquired within " + waited.toMillis() + " ms: "
                        + denial.describe());
    }
}
