/**
 * How this project reaches PostgreSQL: connections of its own or lent ones, their session settings, what an SQLSTATE
 * means, and the one place that decides what happens after a failure. The stores may call it, and whoever wires them
 * chooses the {@link dev.pglock.jdbc.ConnectionSource}. It knows nothing of locks, and users need not import it.
 */
@NullMarked
package dev.pglock.jdbc;

import org.jspecify.annotations.NullMarked;
