package dev.pglock.leader;

/**
 * This replica leads a role no more. Published in its own application context only, on a thread of the election. When it
 * stops or resigns, nobody else is granted the role before the listeners have ended; {@code @Async} ones are not waited
 * for.
 *
 * @param role the role
 * @param fence the epoch of the term that has ended
 * @param instance this replica's name for people
 */
public record LeadershipRevokedEvent(String role, long fence, String instance) {}
