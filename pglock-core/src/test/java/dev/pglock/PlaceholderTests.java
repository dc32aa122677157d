package dev.pglock;

import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.testing.PlaceholderDatabase;
import java.sql.SQLException;
import org.junit.jupiter.api.Test;

class PlaceholderTests {

    @Test
    void databaseStarts() throws Exception {
        try (var postgres = PlaceholderDatabase.start();
                var connection = postgres.getPostgresDatabase().getConnection()) {
            assertThat(version(connection)).isGreaterThanOrEqualTo(14);
            System.out.println("PostgreSQL " + version(connection) + ", Java " + Runtime.version() + ", probe "
                    + System.getProperty("pglock.test.probe"));
        }
    }

    private static int version(java.sql.Connection connection) throws SQLException {
        return connection.getMetaData().getDatabaseMajorVersion();
    }
}
