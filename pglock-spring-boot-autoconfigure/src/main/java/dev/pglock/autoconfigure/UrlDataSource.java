package dev.pglock.autoconfigure;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;
import java.util.function.Supplier;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.util.StringUtils;

/** Connections to a URL that is asked for anew each time, because a service connection may rotate its credentials. */
final class UrlDataSource extends UnpooledDataSource {

    private final Supplier<Target> target;

    private UrlDataSource(Supplier<Target> target) {
        this.target = target;
    }

    static UrlDataSource of(PgLockProperties.Datasource datasource, String url) {
        Target target = new Target(
                url,
                null,
                new Properties(),
                StringUtils.hasText(datasource.username()) ? datasource.username() : null,
                datasource.password());
        return new UrlDataSource(() -> target);
    }

    static UrlDataSource of(JdbcConnectionDetails details) {
        return new UrlDataSource(() -> new Target(
                details.getJdbcUrl(),
                details.getDriverClassName(),
                new Properties(),
                details.getUsername(),
                details.getPassword()));
    }

    @Override
    public Connection getConnection() throws SQLException {
        return connect(target.get());
    }

    @Override
    String safeUrl() {
        return withoutParameters(target.get().url());
    }
}
