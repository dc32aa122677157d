/**
 * Replicas in JVMs of their own: how fast a lock goes from one to the other, and whether all promises hold while they are
 * killed. Both are programs that may be run for longer than a test.
 */
@NullMarked
package dev.pglock.processes;

import org.jspecify.annotations.NullMarked;
