package dev.pglock.engine;

import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import org.junit.jupiter.api.Tag;

@Tag("long")
class LocalElectionTests extends LeaderElectionContract {

    private final LocalSpace space = new LocalSpace();

    @Override
    LockStore newStore(StoreIdentity identity) {
        return new LocalStore(identity, space);
    }
}
