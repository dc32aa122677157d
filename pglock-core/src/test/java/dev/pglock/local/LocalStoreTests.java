package dev.pglock.local;

import dev.pglock.store.LockStore;
import dev.pglock.store.RowStoreContract;
import dev.pglock.store.StoreIdentity;

class LocalStoreTests extends RowStoreContract {

    private final LocalSpace space = new LocalSpace();

    @Override
    protected LockStore newStore(StoreIdentity identity) {
        return new LocalStore(identity, space);
    }
}
