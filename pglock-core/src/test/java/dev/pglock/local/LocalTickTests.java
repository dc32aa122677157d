package dev.pglock.local;

import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.TickContract;

class LocalTickTests extends TickContract {

    private final LocalSpace space = new LocalSpace();

    @Override
    protected LockStore newStore(StoreIdentity identity) {
        return new LocalStore(identity, space);
    }
}
