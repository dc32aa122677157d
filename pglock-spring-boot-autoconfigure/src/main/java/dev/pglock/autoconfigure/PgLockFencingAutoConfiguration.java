package dev.pglock.autoconfigure;

import dev.pglock.CommitFence;
import dev.pglock.LockRegistry;
import dev.pglock.engine.LockEngine;
import dev.pglock.transaction.FencedTransactions;
import java.util.Optional;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.DependsOn;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.util.function.SingletonSupplier;

/** Auto-configuration of fenced commits. Transaction managers are looked at as they come; the registry only under a lock. */
@AutoConfiguration(after = PgLockAutoConfiguration.class)
@ConditionalOnClass({DataSourceUtils.class, TransactionExecutionListener.class})
@ConditionalOnBooleanProperty(name = "pglock.enabled", matchIfMissing = true)
public final class PgLockFencingAutoConfiguration {

    PgLockFencingAutoConfiguration() {}

    @Bean
    static FencedTransactions pgLockFencedTransactions(
            ObjectProvider<PgLockSettings> settings, ObjectProvider<LockRegistry> registry) {
        return new FencedTransactions(
                SingletonSupplier.of(() -> settings.getObject().properties().fencing()),
                SingletonSupplier.of(() -> fence(registry.getObject())),
                ConnectionChoice::isRouting);
    }

    /** Somebody else's registry has tenures that nothing is known of. */
    private static Optional<CommitFence> fence(LockRegistry registry) {
        return registry instanceof LockEngine engine ? Optional.of(engine.commitFence()) : Optional.empty();
    }

    /** After the one that has created the registry, if there is something to lock. */
    @Bean
    @DependsOn("pgLockLifecycle")
    FencingLifecycle pgLockFencingLifecycle(
            PgLockSettings settings, FencedTransactions transactions, ConfigurableListableBeanFactory beans) {
        return new FencingLifecycle(settings, transactions, beans);
    }
}
