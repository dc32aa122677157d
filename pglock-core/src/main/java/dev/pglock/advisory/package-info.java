/**
 * The strategy {@code advisory}: PostgreSQL session advisory locks, all of a replica on one session outside every pool. No
 * table is needed; where the lease table exists, what its rows remember is obeyed, and what must be remembered is written
 * there. The engine reaches it through {@link dev.pglock.store.LockStore}.
 */
@NullMarked
package dev.pglock.advisory;

import org.jspecify.annotations.NullMarked;
