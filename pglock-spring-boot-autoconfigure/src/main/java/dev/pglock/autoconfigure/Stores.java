package dev.pglock.autoconfigure;

import dev.pglock.local.LocalSpace;
import dev.pglock.local.LocalStore;
import dev.pglock.store.LockStore;
import dev.pglock.store.StoreIdentity;

/** Puts together the store of the configured strategy. */
final class Stores {

    private final PgLockSettings settings;
    private final ConnectionChoice connections;

    Stores(PgLockSettings settings, ConnectionChoice connections) {
        this.settings = settings;
        this.connections = connections;
    }

    LockStore create() {
        StoreIdentity identity = StoreIdentity.random(settings.namespace(), settings.label());
        if (settings.isLocal()) {
            return new LocalStore(identity, new LocalSpace());
        }
        connections.choose();
        throw new UnsupportedOperationException("TODO");
    }
}
