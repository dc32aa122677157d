/** pglock side by side with its peers: the same server, the same JVM, interleaved rounds. */
@NullMarked
package dev.pglock.benchmarks;

import org.jspecify.annotations.NullMarked;
