/**
 * The annotations that users put on their methods, and on the {@code DataSource} that locks shall use. They depend on
 * nothing but {@code dev.pglock} and Spring's annotations.
 */
@NullMarked
package dev.pglock.annotation;

import org.jspecify.annotations.NullMarked;
