/**
 * The strategy {@code lease}: a lock is a row with holder, expiry and fence. All SQL of it is in one class and can be
 * pasted into psql. Whoever wires a registry creates the store here; the engine sees no more than
 * {@link dev.pglock.store.LockStore}.
 */
@NullMarked
package dev.pglock.lease;

import org.jspecify.annotations.NullMarked;
