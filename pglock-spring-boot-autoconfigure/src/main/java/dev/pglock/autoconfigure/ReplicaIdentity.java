package dev.pglock.autoconfigure;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What replicas are compared by, when one of them behaves differently. No secrets. Thread-safe. */
final class ReplicaIdentity {

    private final PgLockSettings settings;
    private volatile @Nullable String database;

    ReplicaIdentity(PgLockSettings settings) {
        this.settings = settings;
    }

    void foundDatabase(String found) {
        database = found;
    }

    Map<String, String> describe() {
        Map<String, String> described = new LinkedHashMap<>();
        described.put("strategy", settings.strategy().name().toLowerCase(Locale.ROOT));
        described.put("namespace", settings.namespace());
        described.put("replica", settings.label());
        String found = database;
        if (found != null) {
            described.put("database", found);
        }
        return described;
    }
}
