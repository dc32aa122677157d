/** What tests of all modules share: a PostgreSQL, databases on it, and a network that breaks when a test says so. */
@NullMarked
package dev.pglock.testing;

import org.jspecify.annotations.NullMarked;
