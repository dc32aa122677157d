package dev.pglock.transaction;

import java.util.List;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.hibernate.HibernateTransactionManager;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.jta.JtaTransactionManager;
import org.springframework.transaction.support.ResourceTransactionManager;
import org.springframework.util.ClassUtils;

/** Whose connections a transaction manager's transactions use. Asked late: a manager may find its DataSource by itself. */
final class TransactionSource {

    private static final boolean KNOWS_JPA = isPresent("org.springframework.orm.jpa.JpaTransactionManager");
    private static final boolean KNOWS_HIBERNATE =
            isPresent("org.springframework.orm.jpa.hibernate.HibernateTransactionManager");

    /** Where those managers come from that are known to have no DataSource: of messages, documents, or nothing at all. */
    private static final List<String> OF_SOMETHING_ELSE = List.of(
            "org.springframework.amqp.",
            "org.springframework.batch.",
            "org.springframework.data.",
            "org.springframework.integration.",
            "org.springframework.jms.",
            "org.springframework.kafka.",
            "org.springframework.pulsar.");

    private final PlatformTransactionManager manager;
    private final Predicate<DataSource> isRouting;

    TransactionSource(PlatformTransactionManager manager, Predicate<DataSource> isRouting) {
        this.manager = manager;
        this.isRouting = isRouting;
    }

    private static boolean isPresent(String type) {
        return ClassUtils.isPresent(type, TransactionSource.class.getClassLoader());
    }

    /** Null for transactions of something else, or of nobody knows what: then there is an {@link #obstacle()}. */
    @Nullable
    DataSource dataSource() {
        if (manager instanceof ResourceTransactionManager resource
                && resource.getResourceFactory() instanceof DataSource dataSource) {
            return dataSource;
        }
        DataSource dataSource = KNOWS_JPA ? Jpa.dataSource(manager) : null;
        return dataSource == null && KNOWS_HIBERNATE ? Hibernate.dataSource(manager) : dataSource;
    }

    /** What can be told without a connection. */
    @Nullable
    String obstacle() {
        if (manager instanceof JtaTransactionManager) {
            return "its transactions are JTA's";
        }
        if (!(manager instanceof ConfigurableTransactionManager)) {
            return "it takes no listeners";
        }
        DataSource dataSource = dataSource();
        if (dataSource == null) {
            return isOfSomethingElse() ? null : "its DataSource is not known";
        }
        return isRouting.test(dataSource)
                ? "its DataSource leads to another database according to the thread that asks"
                : null;
    }

    /** A manager of an application's own may extend one of those. */
    private boolean isOfSomethingElse() {
        for (Class<?> type = manager.getClass(); type != null; type = type.getSuperclass()) {
            if (OF_SOMETHING_ELSE.stream().anyMatch(type.getName()::startsWith)) {
                return true;
            }
        }
        return false;
    }

    /** Spring's JPA need not be there. */
    private static final class Jpa {

        static @Nullable DataSource dataSource(PlatformTransactionManager manager) {
            return manager instanceof JpaTransactionManager jpa ? jpa.getDataSource() : null;
        }
    }

    /** Its Hibernate neither. */
    private static final class Hibernate {

        static @Nullable DataSource dataSource(PlatformTransactionManager manager) {
            return manager instanceof HibernateTransactionManager hibernate ? hibernate.getDataSource() : null;
        }
    }
}
