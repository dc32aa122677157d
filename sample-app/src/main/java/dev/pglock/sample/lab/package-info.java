/**
 * The lab: a process that starts a PostgreSQL, three replicas of the sample, and a page on this machine where a reader kills,
 * freezes and cuts them, and watches what the locks do.
 *
 * <p>{@link dev.pglock.sample.lab.Lab} starts and stops everything. What happened is on the {@link
 * dev.pglock.sample.lab.Board}, which replicas and the {@link dev.pglock.sample.lab.LockWatch} write and the page reads.
 * Nothing here is part of a replica; what is, lives in {@code replica}.
 */
@NullMarked
package dev.pglock.sample.lab;

import org.jspecify.annotations.NullMarked;
