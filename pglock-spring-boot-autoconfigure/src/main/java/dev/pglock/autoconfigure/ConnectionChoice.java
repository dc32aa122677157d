package dev.pglock.autoconfigure;

import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import dev.pglock.jdbc.ConnectionSpec;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.AbstractBeanDefinition;
import org.springframework.boot.jdbc.DataSourceUnwrapper;
import org.springframework.boot.jdbc.DatabaseDriver;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.util.StringUtils;

/**
 * Decides where the locks' connections come from, first match: a bean marked with {@code @PgLockDataSource},
 * {@code pglock.datasource.url}, the application's DataSource. Beside a pool of the application own connections are
 * opened where its configuration can be copied, so that an exhausted pool stops no heartbeat; otherwise they are
 * borrowed.
 */
final class ConnectionChoice {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

    /** Those that Spring Boot does not know by their URL, or that hide what they lead to. */
    private static final Set<DatabaseDriver> MAYBE_POSTGRES =
            Set.of(DatabaseDriver.POSTGRESQL, DatabaseDriver.TESTCONTAINERS, DatabaseDriver.UNKNOWN);

    private final PgLockProperties.Datasource properties;
    private final ConfigurableListableBeanFactory beans;
    private final ObjectProvider<DataSource> marked;
    private final ObjectProvider<DataSource> any;
    private final ObjectProvider<JdbcConnectionDetails> details;

    ConnectionChoice(
            PgLockProperties.Datasource properties,
            ConfigurableListableBeanFactory beans,
            ObjectProvider<DataSource> marked,
            ObjectProvider<DataSource> any,
            ObjectProvider<JdbcConnectionDetails> details) {
        this.properties = properties;
        this.beans = beans;
        this.marked = marked;
        this.any = any;
        this.details = details;
    }

    LockConnections choose() {
        DataSource chosen = theMarkedOne();
        if (chosen != null) {
            return through(chosen, true);
        }
        String url = properties.url();
        if (StringUtils.hasText(url)) {
            return own(() -> ConnectionSpecs.of(properties, url), "pglock.datasource.url");
        }
        DataSource application = any.getIfUnique();
        if (application != null) {
            return through(application, false);
        }
        List<String> candidates = candidates();
        JdbcConnectionDetails connectionDetails = details.getIfUnique();
        if (connectionDetails != null && candidates.isEmpty() && !properties.shared()) {
            return of(connectionDetails);
        }
        throw candidates.isEmpty() ? LockDatabaseException.missing() : LockDatabaseException.ambiguous(candidates);
    }

    private @Nullable DataSource theMarkedOne() {
        DataSource one = marked.getIfUnique();
        if (one == null) {
            List<String> several = marked.stream().map(this::nameOf).toList();
            if (!several.isEmpty()) {
                throw LockDatabaseException.ambiguousChoice(several);
            }
        }
        return one;
    }

    private LockConnections through(DataSource dataSource, boolean isMarked) {
        String name = nameOf(dataSource);
        if (isRouting(dataSource)) {
            throw LockDatabaseException.routing(name);
        }
        String origin = "DataSource bean '" + name + "'";
        if (properties.shared()) {
            return borrow(dataSource, origin, "pglock.datasource.shared=true");
        }
        HikariDataSource pool = hikari(dataSource);
        if (pool != null) {
            if (isRouting(pool.getDataSource())) {
                throw LockDatabaseException.routing(name);
            }
            String obstacle = ConnectionSpecs.obstacle(pool);
            return obstacle == null
                    // The bean is looked at each time: whoever refreshes it replaces the pool.
                    ? own(() -> ConnectionSpecs.of(current(dataSource, pool)), origin)
                    : borrow(dataSource, origin, obstacle);
        }
        PGSimpleDataSource plain = DataSourceUnwrapper.unwrap(dataSource, PGSimpleDataSource.class);
        if (plain != null && plain.getClass() == PGSimpleDataSource.class) {
            return own(() -> ConnectionSpecs.of(plain), origin);
        }
        JdbcConnectionDetails connectionDetails = isMarked ? null : details.getIfUnique();
        return connectionDetails != null
                ? of(connectionDetails)
                : borrow(dataSource, origin, ConnectionSpecs.describe(dataSource));
    }

    private static LockConnections of(JdbcConnectionDetails details) {
        return own(() -> ConnectionSpecs.of(details), "the JDBC connection details");
    }

    /** What a driver says to a URL that it does not understand would quote it, with a password in it perhaps. */
    private static LockConnections own(Supplier<ConnectionSpec> specs, String origin) {
        String url = specs.get().url();
        DatabaseDriver product = DatabaseDriver.fromJdbcUrl(url);
        if (!url.contains("postgresql") && !MAYBE_POSTGRES.contains(product)) {
            throw LockDatabaseException.notPostgres(origin, product.name());
        }
        try {
            // A driver accepts what it can parse; the exception of this method does not quote it.
            var ignored = DriverManager.getDriver(url);
        } catch (SQLException e) {
            throw LockDatabaseException.unusableUrl(origin);
        }
        return new LockConnections.Own(specs, origin);
    }

    private static LockConnections borrow(DataSource dataSource, String origin, String why) {
        log.info(
                "Locks borrow their connections from the {} ({}): while all of its connections are in use, no lock is"
                        + " taken or renewed, and one that cannot be renewed in time is lost. A release wakes nobody on another"
                        + " replica: whoever waits there polls, once a second in the end",
                origin,
                why);
        return new LockConnections.Borrowed(plain(dataSource), origin);
    }

    /** Never through a proxy that would join the caller's transaction, or follow it to a replica. */
    private static DataSource plain(DataSource dataSource) {
        DataSource target = null;
        if (dataSource instanceof TransactionAwareDataSourceProxy proxy) {
            target = proxy.getTargetDataSource();
        } else if (dataSource instanceof LazyConnectionDataSourceProxy proxy) {
            target = proxy.getTargetDataSource();
        }
        return target == null ? dataSource : plain(target);
    }

    private static HikariDataSource current(DataSource bean, HikariDataSource last) {
        HikariDataSource now = hikari(bean);
        return now == null ? last : now;
    }

    private static @Nullable HikariDataSource hikari(DataSource dataSource) {
        return DataSourceUnwrapper.unwrap(dataSource, HikariConfigMXBean.class, HikariDataSource.class);
    }

    private static boolean isRouting(@Nullable DataSource dataSource) {
        if (dataSource == null) {
            return false;
        }
        if (DataSourceUnwrapper.unwrap(dataSource, AbstractRoutingDataSource.class) != null) {
            return true;
        }
        try {
            return dataSource.isWrapperFor(AbstractRoutingDataSource.class);
        } catch (SQLException | RuntimeException e) {
            // A wrapper that does not answer such questions hides what it wraps.
            return false;
        }
    }

    /** It creates no bean: the one that is looked for exists. */
    private String nameOf(DataSource dataSource) {
        return Arrays.stream(beans.getBeanNamesForType(DataSource.class, true, false))
                .filter(name -> beans.getSingleton(name) == dataSource)
                .findFirst()
                .orElse("dataSource");
    }

    /** Without those that nobody gets who asks for just a DataSource: a scoped proxy's target, for instance. */
    private List<String> candidates() {
        return Arrays.stream(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, DataSource.class, true, false))
                .filter(this::isCandidate)
                .toList();
    }

    private boolean isCandidate(String name) {
        if (!beans.containsBeanDefinition(name)) {
            return true;
        }
        BeanDefinition definition = beans.getMergedBeanDefinition(name);
        return definition.isAutowireCandidate()
                && !(definition instanceof AbstractBeanDefinition bean && !bean.isDefaultCandidate());
    }
}
