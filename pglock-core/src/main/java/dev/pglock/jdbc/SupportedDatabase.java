package dev.pglock.jdbc;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;

/** What we can work with. Both questions are answered by the driver from what the server told it when connecting. */
final class SupportedDatabase {

    private static final String POSTGRES = "PostgreSQL";
    private static final int OLDEST = 14;

    private SupportedDatabase() {}

    static void check(Connection connection) throws SQLException {
        DatabaseMetaData database = connection.getMetaData();
        String product = database.getDatabaseProductName();
        if (!POSTGRES.equals(product)) {
            throw new UnsupportedDatabaseException("pglock needs PostgreSQL, but this is " + product
                    + ": use pglock.strategy=local to keep locks in memory, for tests say, or pglock.enabled=false");
        }
        if (database.getDatabaseMajorVersion() < OLDEST) {
            throw new UnsupportedDatabaseException("pglock needs PostgreSQL " + OLDEST + " or newer, but this is "
                    + database.getDatabaseProductVersion());
        }
    }
}
