package dev.pglock.engine;

import dev.pglock.LockStrategy;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Where the tenures of each strategy live. One strategy is the registry's own, and comes first. */
final class Homes {

    private final Tenures own;
    private final Map<LockStrategy, Tenures> byStrategy = new EnumMap<>(LockStrategy.class);

    Homes(LockStrategy ownStrategy, List<Tenures> all) {
        all.forEach(home -> byStrategy.put(home.store().strategy(), home));
        Tenures itsOwn = byStrategy.get(ownStrategy);
        if (itsOwn == null) {
            throw new IllegalArgumentException("There is no store for the strategy " + ownStrategy);
        }
        this.own = itsOwn;
    }

    Tenures own() {
        return own;
    }

    @Nullable
    Tenures find(LockStrategy strategy) {
        return byStrategy.get(strategy);
    }

    Set<LockStrategy> strategies() {
        return byStrategy.keySet();
    }

    /** The registry's own first. */
    List<Tenures> all() {
        return Stream.concat(Stream.of(own), byStrategy.values().stream().filter(home -> home != own))
                .toList();
    }
}
