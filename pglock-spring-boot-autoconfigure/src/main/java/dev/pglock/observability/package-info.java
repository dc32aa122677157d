/**
 * Metrics and observations of locks, for Micrometer. Nothing here is needed to lock. Users import what names observations,
 * and {@link dev.pglock.observability.LockObservationConvention} to name them otherwise.
 */
@NullMarked
package dev.pglock.observability;

import org.jspecify.annotations.NullMarked;
