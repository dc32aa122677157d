package dev.pglock.autoconfigure;

import com.zaxxer.hikari.HikariCredentialsProvider;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import com.zaxxer.hikari.util.PropertyElf;
import dev.pglock.jdbc.ConnectionSpec;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/** Reads where somebody else's DataSource connects to, as it is at this moment. It opens nothing and starts no pool. */
final class ConnectionSpecs {

    private static final String LEGACY_OVERRIDE = "com.zaxxer.hikari.legacy.supportUserPassDataSourceOverride";

    private ConnectionSpecs() {}

    static ConnectionSpec of(PgLockProperties.Datasource datasource, String url) {
        String username = datasource.username();
        return ConnectionSpec.of(url, StringUtils.hasText(username) ? username : null, datasource.password());
    }

    static ConnectionSpec of(JdbcConnectionDetails details) {
        return ConnectionSpec.of(details.getJdbcUrl(), details.getUsername(), details.getPassword());
    }

    static ConnectionSpec of(PGSimpleDataSource dataSource) {
        return ConnectionSpec.of(dataSource.getUrl(), dataSource.getUser(), dataSource.getPassword());
    }

    /**
     * Why a pool's configuration does not tell all that its connections are.
     *
     * @return null: it does
     */
    static @Nullable String obstacle(HikariDataSource pool) {
        if (pool.getConnectionInitSql() != null) {
            return "its connectionInitSql may change anything";
        }
        DataSource inner = pool.getDataSource();
        if (inner != null) {
            return inner.getClass() == PGSimpleDataSource.class ? null : describe(inner);
        }
        String className = pool.getDataSourceClassName();
        if (className != null) {
            return className.equals(PGSimpleDataSource.class.getName()) ? null : describe(className);
        }
        return pool.getJdbcUrl() == null ? "it has neither a URL nor a DataSource" : null;
    }

    static String describe(DataSource dataSource) {
        return describe(ClassUtils.getUserClass(dataSource).getName());
    }

    private static String describe(String type) {
        return "the configuration of " + type + " is not known";
    }

    /** In the same order of preference as the pool itself. To be called without an {@link #obstacle} only. */
    static ConnectionSpec of(HikariDataSource pool) {
        Credentials credentials = credentials(pool);
        if (pool.getDataSource() instanceof PGSimpleDataSource inner) {
            return of(inner, credentials, pool);
        }
        if (pool.getDataSourceClassName() != null) {
            PGSimpleDataSource inner = new PGSimpleDataSource();
            PropertyElf.setTargetFromProperties(inner, pool.getDataSourceProperties());
            return of(inner, credentials, pool);
        }
        Map<String, String> properties = new HashMap<>();
        pool.getDataSourceProperties().forEach((key, value) -> properties.put(key.toString(), value.toString()));
        return new ConnectionSpec(
                withSchema(pool.getJdbcUrl(), pool.getSchema()),
                credentials.getUsername(),
                credentials.getPassword(),
                properties);
    }

    private static ConnectionSpec of(PGSimpleDataSource inner, Credentials credentials, HikariDataSource pool) {
        boolean hasOwn = credentials.getUsername() == null;
        return ConnectionSpec.of(
                withSchema(inner.getUrl(), pool.getSchema()),
                hasOwn ? inner.getUser() : credentials.getUsername(),
                hasOwn ? inner.getPassword() : credentials.getPassword());
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

    /** At the end of the URL, because that wins over what stands before it and over properties. */
    private static String withSchema(String url, @Nullable String schema) {
        if (schema == null) {
            return url;
        }
        String quoted = '"' + schema.replace("\"", "\"\"") + '"';
        return url + (url.contains("?") ? "&" : "?") + "currentSchema="
                + URLEncoder.encode(quoted, StandardCharsets.UTF_8);
    }
}
