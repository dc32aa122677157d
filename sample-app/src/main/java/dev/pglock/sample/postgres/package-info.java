/**
 * The PostgreSQL which the sample brings along, so that it runs with one command and several instances of it, started
 * beside each other, meet in one database.
 *
 * <p>{@link dev.pglock.sample.postgres.SharedPostgresInitializer} is the only contact with Spring; it asks {@link
 * dev.pglock.sample.postgres.SharedPostgres} for a server, which is started by the first instance on this machine and
 * stopped by the last. Nothing outside this package needs to call it, and nothing in it is meant for production.
 */
@NullMarked
package dev.pglock.sample.postgres;

import org.jspecify.annotations.NullMarked;
