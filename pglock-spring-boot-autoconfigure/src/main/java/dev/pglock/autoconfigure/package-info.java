/**
 * Auto-configuration: which beans there are, the properties, where connections come from, the life cycle, and what a
 * failed start says. Everything is put together here and nothing is decided elsewhere by a property.
 */
@NullMarked
package dev.pglock.autoconfigure;

import org.jspecify.annotations.NullMarked;
