package dev.pglock;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What is asked for when a lock is asked for. Immutable; every method returns a new request. It carries durations only,
 * never an instant, so that a request can be kept and used again. What is not set is taken from the registry.
 *
 * <pre>{@code
 * LockRequest.of("orders.daily-rollup").leaseDuration(Duration.ofMinutes(5)).waitTimeout(Duration.ofSeconds(10))
 * }</pre>
 */
public final class LockRequest {

    /** The greatest size of a payload, in bytes of UTF-8. */
    public static final int MAX_DATA_BYTES = 8192;

    /** A wait timeout that never ends. */
    public static final Duration UNLIMITED = Duration.ofSeconds(Long.MAX_VALUE);

    /** The longest lease, minimum hold or maximum hold: what is longer is a mistake, and would overflow. */
    public static final Duration GREATEST_DURATION = Duration.ofDays(365);

    private final String name;
    private final Options options;

    private record Options(
            @Nullable LockStrategy strategy,
            @Nullable Duration leaseDuration,
            @Nullable Duration waitTimeout,
            @Nullable Duration minHold,
            @Nullable Duration maxHold,
            @Nullable OnLost onLost,
            @Nullable String version,
            @Nullable String data,
            @Nullable String family) {}

    private LockRequest(String name, Options options) {
        this.name = name;
        this.options = options;
    }

    /**
     * A request for the lock of that name, with the registry's defaults.
     *
     * @param name 1 to 255 characters, see {@link LockNames}
     * @return the request
     * @throws IllegalArgumentException if the name is not usable
     */
    public static LockRequest of(String name) {
        return new LockRequest(
                LockNames.normalise(name), new Options(null, null, null, null, null, null, null, null, null));
    }

    /**
     * Checks a payload.
     *
     * @param data the payload
     * @return the payload
     * @throws IllegalArgumentException if it is larger than {@link #MAX_DATA_BYTES} or contains NUL
     */
    public static String checkData(String data) {
        int size = data.getBytes(StandardCharsets.UTF_8).length;
        if (size > MAX_DATA_BYTES) {
            throw new IllegalArgumentException(
                    "A lock's data must have at most " + MAX_DATA_BYTES + " bytes of UTF-8, but has " + size);
        }
        LockNames.checkText("A lock's data", data);
        return data;
    }

    /**
     * Asks for a strategy other than the registry's.
     *
     * @param strategy the strategy
     * @return a new request
     */
    public LockRequest strategy(LockStrategy strategy) {
        Options o = options;
        return with(new Options(
                Objects.requireNonNull(strategy),
                o.leaseDuration,
                o.waitTimeout,
                o.minHold,
                o.maxHold,
                o.onLost,
                o.version,
                o.data,
                o.family));
    }

    /**
     * Sets how long a grant or a renewal is good for: the bound on the time until another replica takes over when the
     * holder vanishes.
     *
     * @param leaseDuration positive
     * @return a new request
     */
    public LockRequest leaseDuration(Duration leaseDuration) {
        Options o = options;
        return with(new Options(
                o.strategy,
                positive("leaseDuration", leaseDuration),
                o.waitTimeout,
                o.minHold,
                o.maxHold,
                o.onLost,
                o.version,
                o.data,
                o.family));
    }

    /**
     * Sets how long {@link LockRegistry#acquire} waits at most, everything included.
     *
     * @param waitTimeout zero or positive; {@link #UNLIMITED} waits for ever
     * @return a new request
     */
    public LockRequest waitTimeout(Duration waitTimeout) {
        if (waitTimeout.isNegative()) {
            throw new IllegalArgumentException("waitTimeout must not be negative, but is " + waitTimeout);
        }
        Options o = options;
        return with(new Options(
                o.strategy, o.leaseDuration, waitTimeout, o.minHold, o.maxHold, o.onLost, o.version, o.data, o.family));
    }

    /**
     * Sets how long the lock is kept from everybody at the least, counted from the grant, even when the body ends
     * sooner. No thread and no connection waits for that; it may outlast the lease.
     *
     * @param minHold positive
     * @return a new request
     */
    public LockRequest minHold(Duration minHold) {
        Options o = options;
        return with(new Options(
                o.strategy,
                o.leaseDuration,
                o.waitTimeout,
                positive("minHold", minHold),
                o.maxHold,
                o.onLost,
                o.version,
                o.data,
                o.family));
    }

    /**
     * Sets how long a body may run at the most: after that its heartbeats stop and the lock is lost to it.
     *
     * @param maxHold positive
     * @return a new request
     */
    public LockRequest maxHold(Duration maxHold) {
        Options o = options;
        return with(new Options(
                o.strategy,
                o.leaseDuration,
                o.waitTimeout,
                o.minHold,
                positive("maxHold", maxHold),
                o.onLost,
                o.version,
                o.data,
                o.family));
    }

    /**
     * Sets what happens to the body when the lock is lost.
     *
     * @param onLost interrupt or continue
     * @return a new request
     */
    public LockRequest onLost(OnLost onLost) {
        Options o = options;
        return with(new Options(
                o.strategy,
                o.leaseDuration,
                o.waitTimeout,
                o.minHold,
                o.maxHold,
                Objects.requireNonNull(onLost),
                o.version,
                o.data,
                o.family));
    }

    /**
     * Makes the work once for ever: when its body succeeds, the version is remembered with the lock and every later
     * claim for the same version is denied with {@link DenialReason#DONE}. A failure is not remembered.
     *
     * @param version 1 to 255 characters, by the same rule as a name
     * @return a new request
     */
    public LockRequest version(String version) {
        Options o = options;
        return with(new Options(
                o.strategy,
                o.leaseDuration,
                o.waitTimeout,
                o.minHold,
                o.maxHold,
                o.onLost,
                LockNames.normalise("version", version),
                o.data,
                o.family));
    }

    /**
     * Sets the payload that the claim writes beside the lock, for everybody to read with {@link LockRegistry#find}.
     *
     * @param data at most {@link #MAX_DATA_BYTES}
     * @return a new request
     */
    public LockRequest data(String data) {
        Options o = options;
        return with(new Options(
                o.strategy,
                o.leaseDuration,
                o.waitTimeout,
                o.minHold,
                o.maxHold,
                o.onLost,
                o.version,
                checkData(data),
                o.family));
    }

    /**
     * Says what this lock has in common with others whose names are computed: metrics and traces are tagged with it, and not
     * with the name, of which there may be any number. It decides nothing.
     *
     * @param family for instance {@code campaign-{id}} for the name {@code campaign-4711}; not empty
     * @return a new request
     */
    public LockRequest family(String family) {
        if (family.isEmpty()) {
            throw new IllegalArgumentException("family must not be empty");
        }
        Options o = options;
        return with(new Options(
                o.strategy, o.leaseDuration, o.waitTimeout, o.minHold, o.maxHold, o.onLost, o.version, o.data, family));
    }

    private LockRequest with(Options changed) {
        return new LockRequest(name, changed);
    }

    private static Duration positive(String what, Duration value) {
        if (value.isZero() || value.isNegative()) {
            throw new IllegalArgumentException(what + " must be positive, but is " + value);
        }
        if (value.compareTo(GREATEST_DURATION) > 0) {
            throw new IllegalArgumentException(
                    what + " must be at most " + GREATEST_DURATION.toDays() + " days, but is " + value);
        }
        return value;
    }

    /**
     * The lock's name.
     *
     * @return the name in normal form C
     */
    public String name() {
        return name;
    }

    /**
     * The strategy asked for.
     *
     * @return null: the registry's
     */
    public @Nullable LockStrategy strategy() {
        return options.strategy;
    }

    /**
     * How long a grant is good for.
     *
     * @return null: the registry's default
     */
    public @Nullable Duration leaseDuration() {
        return options.leaseDuration;
    }

    /**
     * How long to wait at most.
     *
     * @return null: the registry's default
     */
    public @Nullable Duration waitTimeout() {
        return options.waitTimeout;
    }

    /**
     * How long the lock is kept at the least.
     *
     * @return null: no minimum
     */
    public @Nullable Duration minHold() {
        return options.minHold;
    }

    /**
     * How long a body may run at most.
     *
     * @return null: the registry's default
     */
    public @Nullable Duration maxHold() {
        return options.maxHold;
    }

    /**
     * What happens to the body when the lock is lost.
     *
     * @return null: the registry's default
     */
    public @Nullable OnLost onLost() {
        return options.onLost;
    }

    /**
     * The version of work that is done once for ever.
     *
     * @return null: nothing is remembered
     */
    public @Nullable String version() {
        return options.version;
    }

    /**
     * The payload.
     *
     * @return null: none
     */
    public @Nullable String data() {
        return options.data;
    }

    /**
     * What the lock has in common with others.
     *
     * @return null: not set
     */
    public @Nullable String family() {
        return options.family;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof LockRequest that && name.equals(that.name) && options.equals(that.options);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, options);
    }

    @Override
    public String toString() {
        return "LockRequest[" + name + ", " + options + "]";
    }
}
