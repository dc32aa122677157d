package dev.pglock.transaction;

import dev.pglock.CommitFence;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionExecutionListener;

/**
 * Fences the transactions of all transaction managers: inside a locked method, one commits only if each lease under which
 * the thread runs is still held, and nobody else is granted it before the commit. Otherwise it is rolled back, and whoever
 * asked for the commit gets a {@link dev.pglock.LockLostException}, or a {@link dev.pglock.LockStorageException} where
 * that could not be found out.
 *
 * <p>What counts are the locks of {@link dev.pglock.LockContext} at the commit. A transaction that has begun before its
 * lock was taken commits after its release, and is not fenced; nor is work on another thread, or one that only reads, or a
 * reactive one. Outside locked methods no statement is added.
 *
 * <p>Thread-safe.
 */
public final class FencedTransactions implements BeanPostProcessor {

    private static final Logger log = LoggerFactory.getLogger(FencedTransactions.class);

    private final Supplier<Fencing> fencing;
    private final Supplier<Optional<CommitFence>> fence;
    private final Predicate<DataSource> isRouting;
    private final Map<String, FencedManager> managers = new ConcurrentHashMap<>();

    /**
     * Creates it.
     *
     * @param fencing whether; asked at the first commit under a lock
     * @param fence what checks a commit; likewise. Empty: the registry has nothing to check by
     * @param isRouting whether a DataSource leads to another database according to the thread that asks
     */
    public FencedTransactions(
            Supplier<Fencing> fencing, Supplier<Optional<CommitFence>> fence, Predicate<DataSource> isRouting) {
        this.fencing = fencing;
        this.fence = fence;
        this.isRouting = isRouting;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        if (bean instanceof PlatformTransactionManager manager) {
            managers.put(beanName, join(beanName, manager));
        }
        return bean;
    }

    private FencedManager join(String name, PlatformTransactionManager manager) {
        FencedManager fenced = new FencedManager(name, new TransactionSource(manager, isRouting), this);
        if (manager instanceof ConfigurableTransactionManager configurable) {
            // A new list: that of the manager may not take more. Last, so that as little as possible comes in between.
            Collection<TransactionExecutionListener> listeners =
                    new ArrayList<>(configurable.getTransactionExecutionListeners());
            listeners.add(fenced);
            configurable.setTransactionExecutionListeners(listeners);
        }
        return fenced;
    }

    /**
     * Finds out now which transaction managers can be fenced, rather than at the first commit: a WARN tells which cannot.
     * One whose database is away, or silent, is left to its first commit.
     *
     * @param existing the managers that are beans by now; what others have created earlier than this is fenced too
     * @param patience how long this may take
     * @throws FencingImpossibleException if it is required, and not possible for one of them
     */
    public void decide(Map<String, PlatformTransactionManager> existing, Duration patience) {
        if (fencing() == Fencing.OFF) {
            return;
        }
        existing.forEach((name, manager) -> managers.computeIfAbsent(name, missed -> join(missed, manager)));
        boolean required = fencing() == Fencing.REQUIRED;
        if (required && managers.values().stream().noneMatch(FencedManager::isOfDatabase)) {
            throw impossible("there is no transaction manager of a DataSource");
        }
        CommitFence theFence = fence().orElse(null);
        if (theFence == null) {
            if (required) {
                throw impossible("the lock registry is not that of pglock");
            }
            return;
        }
        // Elsewhere, because a pool whose database is away makes its caller wait, and not only for as long as we like.
        FutureTask<Void> deciding =
                new FutureTask<>(() -> managers.values().forEach(manager -> manager.decide(theFence)), null);
        Thread thread = new Thread(deciding, "pglock-fencing");
        thread.setDaemon(true);
        thread.start();
        try {
            deciding.get(patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            log.debug("Which commits can be fenced is found out by the first of them");
            boolean ignored = deciding.cancel(true);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            throw new IllegalStateException(e.getCause());
        }
    }

    private static FencingImpossibleException impossible(String why) {
        return new FencingImpossibleException("Commits under leases are required to be fenced, but " + why + ".");
    }

    Fencing fencing() {
        return fencing.get();
    }

    Optional<CommitFence> fence() {
        return fence.get();
    }
}
