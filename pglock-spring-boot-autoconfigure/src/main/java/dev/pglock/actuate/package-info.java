/** What Spring Boot's Actuator shows of locks, and lets operators do. Nobody imports it. */
@NullMarked
package dev.pglock.actuate;

import org.jspecify.annotations.NullMarked;
