/**
 * The seam between the engine and the strategies: five short methods. The engine calls them; the strategies answer by
 * SQL, or in memory. Not for users.
 */
@NullMarked
package dev.pglock.store;

import org.jspecify.annotations.NullMarked;
