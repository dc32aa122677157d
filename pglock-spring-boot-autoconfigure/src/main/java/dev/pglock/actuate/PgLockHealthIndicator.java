package dev.pglock.actuate;

import dev.pglock.StoreStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

/**
 * Whether this replica's locks are well, from memory: {@code UP}, or {@code UNKNOWN} while heartbeats are late or the
 * database fails. Never {@code DOWN}: neither a restart nor less traffic would mend a lock. It asks nothing and takes no lock.
 */
public final class PgLockHealthIndicator extends AbstractHealthIndicator {

    private final Supplier<List<StoreStatus>> status;
    private final Supplier<Map<String, String>> identity;

    /**
     * Creates it.
     *
     * @param status how the locks are, from memory; empty while nobody has asked for any
     * @param identity what to compare replicas by
     */
    public PgLockHealthIndicator(Supplier<List<StoreStatus>> status, Supplier<Map<String, String>> identity) {
        this.status = status;
        this.identity = identity;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        List<StoreStatus> stores = status.get();
        boolean well = stores.stream().noneMatch(store -> store.isStale() || store.outage() != null);
        builder.status(well ? Status.UP : Status.UNKNOWN).withDetails(identity.get());
        stores.forEach(store -> builder.withDetail(store.strategy().name().toLowerCase(Locale.ROOT), details(store)));
    }

    private static Map<String, Object> details(StoreStatus store) {
        Map<String, Object> details = new LinkedHashMap<>();
        details.put("held", store.held());
        details.put("sessions", store.sessions());
        details.put("lost", store.lost());
        if (store.heartbeatAge() != null) {
            details.put("heartbeatAgeMillis", store.heartbeatAge().toMillis());
        }
        if (store.outage() != null) {
            details.put("outageMillis", store.outage().toMillis());
        }
        return details;
    }
}
