/** Auto-configuration of pglock. */
@NullMarked
package dev.pglock.autoconfigure;

import org.jspecify.annotations.NullMarked;
