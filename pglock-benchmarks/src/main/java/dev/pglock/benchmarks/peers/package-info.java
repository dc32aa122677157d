/** What is measured, each behind the same few methods, with the best settings that its manual offers. */
@NullMarked
package dev.pglock.benchmarks.peers;

import org.jspecify.annotations.NullMarked;
