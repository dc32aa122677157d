package dev.pglock.engine;

import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import java.time.Duration;

class LocalRegistryTests extends RowRegistryContract {

    private final LocalSpace space = new LocalSpace();

    @Override
    LockStore newStore(StoreIdentity identity, Duration lease) {
        return new LocalStore(identity, space);
    }

    @Override
    WakeUps newWakeUps(String label) {
        return space.wakeUps();
    }
}
