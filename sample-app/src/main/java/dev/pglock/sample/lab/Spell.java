package dev.pglock.sample.lab;

import org.jspecify.annotations.Nullable;

/**
 * A time in which a replica was not well, as a background of its lane.
 *
 * @param id of this spell
 * @param replica whose
 * @param kind {@code starting}, {@code frozen}, {@code cut}, {@code stopping} or {@code down}
 * @param from the server's time in milliseconds since 1970
 * @param to null: until now
 */
record Spell(
        long id,
        String replica,
        String kind,
        long from,
        @Nullable Long to) {}
