/**
 * Everything that is the same for all strategies, written once over the seam {@link dev.pglock.store.LockStore}: local
 * exclusion, waiting, heartbeats, the trust deadline, loss and shutdown.
 *
 * <p>A tenure goes through few states:
 *
 * <pre>
 *   claim granted ──► HELD ──release──► RELEASED
 *                      │
 *                      └─ trust ended, taken, maxHold, closed ──► LOST
 * </pre>
 *
 * LOST and RELEASED are final. "May I still act?" is one comparison of {@link System#nanoTime()} with the moment until
 * which the tenure is trusted; that moment was computed before the granting statement was sent. Whoever notices the end
 * of trust first (the watchdog, the heartbeat, a caller of {@code isHeld}) performs the transition, once.
 *
 * <p>A name stays taken inside this process until its handle is released, even when the tenure was lost before: a body
 * that is still running is never joined by a second one in the same process.
 *
 * <p>Users meet {@link dev.pglock.engine.LockEngine} only when they build a registry without Spring.
 */
@NullMarked
package dev.pglock.engine;

import org.jspecify.annotations.NullMarked;
