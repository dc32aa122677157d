@NullMarked
package dev.pglock.test;

import org.jspecify.annotations.NullMarked;
