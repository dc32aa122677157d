package dev.pglock.annotation;

/** By which strategy an annotated method's lock is kept. */
public enum Strategy {
    /** As {@code pglock.strategy} says. */
    DEFAULT,
    /** A row with holder, expiry and fence, renewed by heartbeats. */
    LEASE,
    /** A session advisory lock on the replica's lock session. */
    ADVISORY
}
