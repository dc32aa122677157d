/** Locks and Spring's transactions: locks that last until the running transaction ends. */
@NullMarked
package dev.pglock.transaction;

import org.jspecify.annotations.NullMarked;
