/**
 * Leader elections of an application: where they are found, and the events of their terms. What they do is in {@link
 * dev.pglock.LeaderElection}. Applications import this package.
 */
@NullMarked
package dev.pglock.leader;

import org.jspecify.annotations.NullMarked;
