package dev.pglock.lease;

import dev.pglock.LockException;
import org.jspecify.annotations.Nullable;

/**
 * The lease table is missing and could not be created, or cannot be used as it is. The message lists what is wrong, with
 * the statements to hand to whoever may run them.
 */
public class LeaseSchemaException extends LockException {

    private static final long serialVersionUID = 1L;

    LeaseSchemaException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
