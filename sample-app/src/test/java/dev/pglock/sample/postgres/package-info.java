@NullMarked
package dev.pglock.sample.postgres;

import org.jspecify.annotations.NullMarked;
