package dev.pglock.autoconfigure;

import javax.sql.DataSource;

/**
 * Where the locks' connections come from.
 *
 * @param dataSource opens a new connection each time, or lends one
 * @param borrowed whether they belong to the application
 * @param origin for people
 */
record LockConnections(DataSource dataSource, boolean borrowed, String origin) {}
