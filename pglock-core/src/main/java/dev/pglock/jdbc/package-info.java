/**
 * How this project reaches PostgreSQL: connections of its own or lent ones, their session settings, what an SQLSTATE
 * means, the one place that decides what happens after a failure, and the session that listens for releases. The stores
 * may call it, and whoever wires them chooses the {@link dev.pglock.jdbc.ConnectionSource} and
 * {@link dev.pglock.jdbc.NotifiedWakeUps}. It knows nothing else of locks, and users need not import it.
 */
@NullMarked
package dev.pglock.jdbc;

import org.jspecify.annotations.NullMarked;
