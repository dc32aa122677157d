package dev.pglock.leader;

/**
 * This replica leads a role from now on. Published in its own application context only, on a thread of the election. A
 * listener that throws gives the leadership up.
 *
 * @param role the role
 * @param fence the epoch of the term: greater than that of every earlier leader
 * @param instance this replica's name for people
 */
public record LeadershipGrantedEvent(String role, long fence, String instance) {}
