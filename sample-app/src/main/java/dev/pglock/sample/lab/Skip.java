package dev.pglock.sample.lab;

/**
 * A call that did not run, because another replica did or had done it.
 *
 * @param lock the lock's name
 * @param replica who skipped
 * @param at the server's time in milliseconds since 1970
 */
record Skip(String lock, String replica, long at) {}
