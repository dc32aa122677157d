package dev.pglock.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;

/** What a native image must keep: the script that creates the table. */
final class PgLockRuntimeHints implements RuntimeHintsRegistrar {

    static final String SCHEMA = "dev/pglock/lease/schema.sql";

    PgLockRuntimeHints() {}

    @Override
    public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
        hints.resources().registerPattern(SCHEMA);
    }
}
