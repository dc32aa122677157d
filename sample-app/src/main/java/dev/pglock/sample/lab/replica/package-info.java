/**
 * What a replica of the lab has beside the ordinary sample, with the profile {@code lab}: jobs that are worth watching, and
 * a pipe to the lab by which it tells what happens to its locks and is told what to do. The pipe works also when the
 * database is out of reach.
 */
@NullMarked
package dev.pglock.sample.lab.replica;

import org.jspecify.annotations.NullMarked;
