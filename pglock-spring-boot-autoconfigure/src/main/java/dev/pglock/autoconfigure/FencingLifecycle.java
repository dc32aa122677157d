package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import dev.pglock.transaction.FencedTransactions;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.SmartLifecycle;
import org.springframework.scheduling.concurrent.ExecutorConfigurationSupport;
import org.springframework.transaction.PlatformTransactionManager;

/**
 * Finds out at start-up which commits can be fenced, where leases are used at all. It creates no bean for that: with nothing
 * locked so far, and for a manager that comes later, the first commit under a lease finds it out.
 */
final class FencingLifecycle implements SmartLifecycle {

    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final PgLockSettings settings;
    private final FencedTransactions transactions;
    private final ConfigurableListableBeanFactory beans;
    private volatile boolean running;

    FencingLifecycle(PgLockSettings settings, FencedTransactions transactions, ConfigurableListableBeanFactory beans) {
        this.settings = settings;
        this.transactions = transactions;
        this.beans = beans;
    }

    /** Before the schedulers. */
    @Override
    public int getPhase() {
        return ExecutorConfigurationSupport.DEFAULT_PHASE - 1;
    }

    @Override
    public void start() {
        boolean usesLease =
                !settings.isLocal() && existing(Stores.class).values().stream().anyMatch(Stores::isAskedForLeases);
        if (usesLease && !existing(LockRegistry.class).isEmpty()) {
            transactions.decide(existing(PlatformTransactionManager.class), PATIENCE);
        }
        running = true;
    }

    private <T> Map<String, T> existing(Class<T> type) {
        return Arrays.stream(beans.getBeanNamesForType(type, false, false))
                .filter(beans::containsSingleton)
                .collect(Collectors.toMap(Function.identity(), name -> beans.getBean(name, type)));
    }

    @Override
    public void stop() {
        running = false;
    }

    @Override
    public boolean isRunning() {
        return running;
    }
}
