/**
 * For tests of applications that use pglock: {@link dev.pglock.test.PgLockTest a slice} without a database, {@link
 * dev.pglock.test.TickDriver a clock} that schedules follow, {@link dev.pglock.test.LockAssertions assertions}, and {@link
 * dev.pglock.test.TwoReplicas two replicas} on a PostgreSQL. Nothing here keeps static state.
 */
@NullMarked
package dev.pglock.test;

import org.jspecify.annotations.NullMarked;
