package dev.pglock.benchmarks.peers;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;

/**
 * Where a replica stands.
 *
 * @param url the database
 * @param label who it is
 * @param connections how many it may open
 * @param lease how long a lock outlives a holder that has died
 */
public record Place(String url, String username, String password, String label, int connections, Duration lease) {

    Connection connect() throws SQLException {
        return DriverManager.getConnection(url, username, password);
    }

    /** A pool as Spring Boot makes it, with all connections open from the start. */
    HikariDataSource pool() {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername(username);
        config.setPassword(password);
        config.setMaximumPoolSize(connections);
        config.setPoolName(label);
        config.addDataSourceProperty("ApplicationName", label);
        return new HikariDataSource(config);
    }
}
