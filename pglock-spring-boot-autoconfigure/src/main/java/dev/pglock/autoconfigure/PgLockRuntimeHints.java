package dev.pglock.autoconfigure;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.ExecutableMode;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.aot.hint.TypeReference;

/** What a native image must keep: the script that creates the table, and how {@code billing: {}} becomes a role. */
final class PgLockRuntimeHints implements RuntimeHintsRegistrar {

    static final String SCHEMA = "dev/pglock/lease/schema.sql";

    PgLockRuntimeHints() {}

    @Override
    public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
        hints.resources().registerPattern(SCHEMA);
        hints.reflection()
                .registerType(PropertyChecks.WrittenLeader.class, MemberCategory.INVOKE_DECLARED_CONSTRUCTORS)
                .registerType(
                        PgLockProperties.Leader.class,
                        type -> type.withMethod(
                                "valueOf", List.of(TypeReference.of(String.class)), ExecutableMode.INVOKE));
    }
}
