@NullMarked
package dev.pglock.sample;

import org.jspecify.annotations.NullMarked;
