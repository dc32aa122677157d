package dev.pglock.transaction;

/** Commits under leases are required to be fenced, and cannot be. */
public final class FencingImpossibleException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    FencingImpossibleException(String message) {
        super(message);
    }
}
