package dev.pglock.transaction;

import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.jta.JtaTransactionManager;
import org.springframework.transaction.support.ResourceTransactionManager;
import org.springframework.util.ClassUtils;

/** Whose connections a transaction manager's transactions use. Asked late: a manager may find its DataSource by itself. */
final class TransactionSource {

    private static final boolean KNOWS_JPA = ClassUtils.isPresent(
            "org.springframework.orm.jpa.JpaTransactionManager", TransactionSource.class.getClassLoader());

    private final PlatformTransactionManager manager;
    private final Predicate<DataSource> isRouting;

    TransactionSource(PlatformTransactionManager manager, Predicate<DataSource> isRouting) {
        this.manager = manager;
        this.isRouting = isRouting;
    }

    /** Null for transactions of something else: messages, say. */
    @Nullable
    DataSource dataSource() {
        if (manager instanceof ResourceTransactionManager resource
                && resource.getResourceFactory() instanceof DataSource dataSource) {
            return dataSource;
        }
        return KNOWS_JPA ? Jpa.dataSource(manager) : null;
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
        return dataSource != null && isRouting.test(dataSource)
                ? "its DataSource leads to another database according to the thread that asks"
                : null;
    }

    /** Spring's JPA need not be there. */
    private static final class Jpa {

        static @Nullable DataSource dataSource(PlatformTransactionManager manager) {
            return manager instanceof JpaTransactionManager jpa ? jpa.getDataSource() : null;
        }
    }
}
