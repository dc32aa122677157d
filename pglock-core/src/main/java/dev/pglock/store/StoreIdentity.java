package dev.pglock.store;

import java.util.UUID;

/**
 * Who a store claims for.
 *
 * @param namespace the part of the database's locks that this application sees
 * @param holder random per registry: ownership rests on it
 * @param label for people only, the host's name for instance
 */
public record StoreIdentity(String namespace, UUID holder, String label) {

    /**
     * A new identity with a random holder.
     *
     * @param namespace the namespace
     * @param label the label
     * @return the identity
     */
    public static StoreIdentity random(String namespace, String label) {
        return new StoreIdentity(namespace, UUID.randomUUID(), label);
    }
}
