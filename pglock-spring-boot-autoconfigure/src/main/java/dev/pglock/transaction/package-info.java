/** Locks and Spring's transactions: commits that are fenced, and locks that last until the running transaction ends. */
@NullMarked
package dev.pglock.transaction;

import org.jspecify.annotations.NullMarked;
