package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import dev.pglock.transaction.TransactionLocks;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.util.function.SingletonSupplier;

/** Auto-configuration of locks that last as long as a transaction of the application's DataSource. */
@AutoConfiguration(after = {DataSourceAutoConfiguration.class, PgLockAutoConfiguration.class})
@ConditionalOnSingleCandidate(DataSource.class)
public final class PgLockTransactionAutoConfiguration {

    PgLockTransactionAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    TransactionLocks pgLockTransactionLocks(ObjectProvider<LockRegistry> registry, DataSource dataSource) {
        return new TransactionLocks(SingletonSupplier.of(registry::getObject), dataSource);
    }
}
