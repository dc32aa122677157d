package dev.pglock.aop;

/** What happens when a method that should be locked cannot be. */
public enum Verification {
    /** The start fails. */
    FAIL,
    /** A WARN is logged, and the method runs unlocked. */
    WARN,
    /** Nothing. */
    OFF
}
