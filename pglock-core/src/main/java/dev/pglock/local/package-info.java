/**
 * The strategy {@code local}: locks in memory, for tests and for running without a database. It keeps the contract of the
 * other stores inside one process and excludes nobody outside it.
 */
@NullMarked
package dev.pglock.local;

import org.jspecify.annotations.NullMarked;
