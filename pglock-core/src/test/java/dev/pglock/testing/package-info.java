/**
 * What tests share, those of users included (artifact {@code pglock-core}, type {@code test-jar}): a PostgreSQL and databases
 * on it, and a kit of faults.
 *
 * <ul>
 *   <li>{@link dev.pglock.testing.TcpProxy}: a network that is cut, stalls, delays, swallows, refuses
 *   <li>{@link dev.pglock.testing.TestDatabase#terminate}: a session that is ended
 *   <li>{@link dev.pglock.testing.RestartableServer}: a server that stops, crashes and comes back
 *   <li>{@link dev.pglock.testing.StandbyServer}: a failover
 *   <li>{@link dev.pglock.testing.ConnectionHog}: no connection is left
 *   <li>{@link dev.pglock.testing.ChildJvm}: a replica that is frozen, killed, or asked to end
 *   <li>{@link dev.pglock.testing.Faults}: any of them, by seed
 * </ul>
 */
@NullMarked
package dev.pglock.testing;

import org.jspecify.annotations.NullMarked;
