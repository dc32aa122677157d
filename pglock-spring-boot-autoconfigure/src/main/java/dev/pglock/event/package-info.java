/** Application events that tell of locks. Users import them; whoever publishes them is the auto-configuration. */
@NullMarked
package dev.pglock.event;

import org.jspecify.annotations.NullMarked;
