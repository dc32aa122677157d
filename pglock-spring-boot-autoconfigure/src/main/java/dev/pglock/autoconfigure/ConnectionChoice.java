package dev.pglock.autoconfigure;

import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.AbstractBeanDefinition;
import org.springframework.boot.jdbc.DataSourceUnwrapper;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/**
 * Decides where the locks' connections come from, first match: a bean marked with {@code @PgLockDataSource},
 * {@code pglock.datasource.url}, the application's DataSource. Beside a pool of the application own connections are
 * opened where its configuration can be copied, so that an exhausted pool stops no heartbeat; otherwise they are
 * borrowed.
 */
final class ConnectionChoice {

    private static final Logger log = LoggerFactory.getLogger(PgLockAutoConfiguration.class);

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
            return new LockConnections(UrlDataSource.of(properties, url), false, "pglock.datasource.url");
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
        if (pool != null && isRouting(pool.getDataSource())) {
            throw LockDatabaseException.routing(name);
        }
        if (pool != null && HikariCopy.canCopy(pool)) {
            return new LockConnections(new HikariCopy(() -> current(dataSource, pool)), false, origin);
        }
        JdbcConnectionDetails connectionDetails = isMarked ? null : details.getIfUnique();
        if (connectionDetails != null) {
            return of(connectionDetails);
        }
        return borrow(dataSource, origin, "the configuration of a " + typeOf(dataSource) + " cannot be copied");
    }

    private static LockConnections of(JdbcConnectionDetails details) {
        return new LockConnections(UrlDataSource.of(details), false, "the JDBC connection details");
    }

    private static LockConnections borrow(DataSource dataSource, String origin, String why) {
        log.info(
                "Locks borrow their connections from the {} ({}): while all of its connections are in use, no lock is"
                        + " taken or renewed, and one that cannot be renewed in time is lost",
                origin,
                why);
        return new LockConnections(plain(dataSource), true, origin);
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

    private static String typeOf(DataSource dataSource) {
        return ClassUtils.getUserClass(dataSource).getName();
    }
}
