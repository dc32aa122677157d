package dev.pglock.sample.lab;

import org.jspecify.annotations.Nullable;

/**
 * A replica as the page shows it.
 *
 * @param name its label
 * @param state {@code starting}, {@code up}, {@code frozen}, {@code cut}, {@code stopping} or {@code down}
 * @param pid its process, while it has one
 */
record ReplicaView(String name, String state, @Nullable Long pid) {}
