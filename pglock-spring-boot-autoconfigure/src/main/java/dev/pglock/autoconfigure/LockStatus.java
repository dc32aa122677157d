package dev.pglock.autoconfigure;

import dev.pglock.LockRegistry;
import dev.pglock.StoreStatus;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/** How the locks are, as far as there is a registry by now: nobody's first lock is to be that of whoever only looks. */
final class LockStatus implements Supplier<List<StoreStatus>> {

    private final ConfigurableListableBeanFactory beans;

    LockStatus(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    @Override
    public List<StoreStatus> get() {
        return Arrays.stream(beans.getBeanNamesForType(LockRegistry.class, false, false))
                .filter(beans::containsSingleton)
                .map(beans::getSingleton)
                .filter(LockRegistry.class::isInstance)
                .flatMap(registry -> ((LockRegistry) registry).status().stream())
                .toList();
    }
}
