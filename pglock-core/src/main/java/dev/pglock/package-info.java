/** Locks kept in PostgreSQL. */
@NullMarked
package dev.pglock;

import org.jspecify.annotations.NullMarked;
