@NullMarked
package dev.pglock.sample.lab;

import org.jspecify.annotations.NullMarked;
