package dev.pglock.autoconfigure;

import com.zaxxer.hikari.HikariCredentialsProvider;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import com.zaxxer.hikari.util.PropertyElf;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.util.ClassUtils;

/**
 * Opens connections as a HikariCP pool would, beside it and without starting it. The pool is looked at each time: what
 * rotates a secret changes it there, and what refreshes a bean replaces the pool.
 */
final class HikariCopy extends UnpooledDataSource {

    private static final String LEGACY_OVERRIDE = "com.zaxxer.hikari.legacy.supportUserPassDataSourceOverride";

    private final Supplier<HikariDataSource> original;

    HikariCopy(Supplier<HikariDataSource> original) {
        this.original = original;
    }

    /** Whether everything that a connection needs is in the pool's configuration. */
    static boolean canCopy(HikariDataSource pool) {
        return pool.getDataSource() != null || pool.getDataSourceClassName() != null || pool.getJdbcUrl() != null;
    }

    @Override
    public Connection getConnection() throws SQLException {
        HikariDataSource pool = original.get();
        Connection connection = open(pool, credentials(pool));
        try {
            prepare(connection, pool);
            return connection;
        } catch (SQLException | RuntimeException e) {
            closeAfter(e, connection);
            throw e;
        }
    }

    @Override
    @Nullable
    String safeUrl() {
        String url = original.get().getJdbcUrl();
        return url == null ? null : withoutParameters(url);
    }

    /** The same order of preference as the pool's own. */
    private static Connection open(HikariDataSource pool, Credentials credentials) throws SQLException {
        if (pool.getDataSource() != null) {
            return open(pool.getDataSource(), credentials);
        }
        if (pool.getDataSourceClassName() != null) {
            return open(newDataSource(pool.getDataSourceClassName(), pool.getDataSourceProperties()), credentials);
        }
        Properties properties = new Properties();
        pool.getDataSourceProperties()
                .forEach((key, value) -> properties.setProperty(key.toString(), value.toString()));
        return connect(new Target(
                pool.getJdbcUrl(),
                pool.getDriverClassName(),
                properties,
                credentials.getUsername(),
                credentials.getPassword()));
    }

    private static Connection open(DataSource dataSource, Credentials credentials) throws SQLException {
        return credentials.getUsername() == null
                ? dataSource.getConnection()
                : dataSource.getConnection(credentials.getUsername(), credentials.getPassword());
    }

    private static DataSource newDataSource(String className, Properties properties) throws SQLException {
        try {
            DataSource dataSource = (DataSource) BeanUtils.instantiateClass(ClassUtils.forName(className, null));
            PropertyElf.setTargetFromProperties(dataSource, properties);
            if (dataSource.getLoginTimeout() == 0) {
                dataSource.setLoginTimeout(10);
            }
            return dataSource;
        } catch (ClassNotFoundException | LinkageError | RuntimeException e) {
            throw new SQLException("The DataSource class " + className + " cannot be used", "08001", e);
        }
    }

    private static Credentials credentials(HikariDataSource pool) {
        HikariCredentialsProvider provider = pool.getCredentialsProvider();
        if (provider != null) {
            return provider.getCredentials();
        }
        return Boolean.getBoolean(LEGACY_OVERRIDE)
                ? Credentials.of(pool.getUsername(), pool.getPassword())
                : pool.getCredentials();
    }

    /** What decides which table a name means. Isolation and read-only are the application's business. */
    private static void prepare(Connection connection, HikariDataSource pool) throws SQLException {
        if (pool.getCatalog() != null) {
            connection.setCatalog(pool.getCatalog());
        }
        if (pool.getSchema() != null) {
            connection.setSchema(pool.getSchema());
        }
        if (pool.getConnectionInitSql() != null) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(pool.getConnectionInitSql());
            }
            if (!connection.getAutoCommit()) {
                connection.commit();
            }
        }
    }

    private static void closeAfter(Exception failure, Connection connection) {
        try {
            connection.close();
        } catch (SQLException e) {
            failure.addSuppressed(e);
        }
    }
}
