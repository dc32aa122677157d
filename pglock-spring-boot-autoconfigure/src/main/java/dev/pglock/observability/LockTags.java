package dev.pglock.observability;

import dev.pglock.LockHandle;
import dev.pglock.LockRequest;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The value of the tag {@code lock}: what was written in the source, and never what it was evaluated to. Of names that a
 * program computes itself the first few are taken as they are, all others are {@link #OTHER}. Thread-safe.
 */
final class LockTags {

    /** All names beyond the first few. */
    static final String OTHER = "other";

    /** Each is a time series for each meter, outcome and replica. */
    static final int MOST_NAMES = 20;

    private final Set<String> names = ConcurrentHashMap.newKeySet();

    String of(LockRequest request) {
        return of(request.name(), request.family());
    }

    String of(LockHandle lock) {
        return of(lock.name(), lock.family());
    }

    private String of(String name, @Nullable String family) {
        if (family != null) {
            return family;
        }
        if (names.contains(name)) {
            return name;
        }
        // Two that come at the same time may be one too many, once.
        return names.size() < MOST_NAMES && names.add(name) ? name : OTHER;
    }

    static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }
}
