package dev.pglock.autoconfigure;

import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/**
 * Opens a new connection each time it is asked, with the credentials of that moment. It is no bean: a second DataSource
 * would switch off what Spring Boot configures for the application's only one.
 */
abstract class UnpooledDataSource extends AbstractDataSource {

    /** Where to, and as whom. */
    record Target(
            String url,
            @Nullable String driverClassName,
            Properties properties,
            @Nullable String username,
            @Nullable String password) {

        @Override
        public String toString() {
            return "Target[" + withoutParameters(url) + "]";
        }
    }

    @Override
    public abstract Connection getConnection() throws SQLException;

    @Override
    public Connection getConnection(String username, String password) throws SQLException {
        throw new SQLException("The credentials of these connections are configured, not passed");
    }

    @Override
    public int getLoginTimeout() {
        return 0;
    }

    /** The time is bounded by the driver's properties; the one in {@link DriverManager} is everybody's. */
    @Override
    public void setLoginTimeout(int timeout) {}

    /** The database that this leads to, to be shown to people; null if it is not known. */
    abstract @Nullable String safeUrl();

    static Connection connect(Target target) throws SQLException {
        Properties info = new Properties();
        info.putAll(target.properties());
        if (target.url().contains(":postgresql:")) {
            // A server that accepts and then says nothing must not hold up a heartbeat, or the end of the application.
            // What the URL says wins over these.
            info.putIfAbsent("tcpKeepAlive", "true");
            info.putIfAbsent("loginTimeout", "10");
            info.putIfAbsent("socketTimeout", "10");
        }
        if (target.username() != null) {
            info.setProperty("user", target.username());
        }
        if (target.password() != null) {
            info.setProperty("password", target.password());
        }
        Connection connection;
        try {
            connection = driver(target).connect(target.url(), info);
        } catch (SQLException e) {
            throw withoutUrl(e, target.url());
        }
        if (connection == null) {
            throw new SQLException(
                    "The JDBC driver does not accept the URL " + withoutParameters(target.url()), "08001");
        }
        return connection;
    }

    private static Driver driver(Target target) throws SQLException {
        String driver = target.driverClassName();
        if (!StringUtils.hasText(driver)) {
            return DriverManager.getDriver(target.url());
        }
        try {
            return (Driver) BeanUtils.instantiateClass(ClassUtils.forName(driver, null));
        } catch (ClassNotFoundException | LinkageError | RuntimeException e) {
            throw new SQLException("The JDBC driver " + driver + " cannot be loaded", "08001", e);
        }
    }

    /** A driver that does not understand a URL quotes it, with the password in it. */
    private static SQLException withoutUrl(SQLException failure, String url) {
        String message = failure.getMessage();
        return message != null && message.contains(url)
                ? new SQLException(message.replace(url, withoutParameters(url)), failure.getSQLState())
                : failure;
    }

    /** A URL without its parameters and without credentials before the host. */
    static String withoutParameters(String url) {
        return url.replaceFirst("[?;].*$", "").replaceFirst("//[^/@]*@", "//");
    }
}
