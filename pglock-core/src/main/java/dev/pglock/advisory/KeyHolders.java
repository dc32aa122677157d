package dev.pglock.advisory;

import dev.pglock.Denial;
import dev.pglock.DenialReason;
import dev.pglock.LockInfo;
import dev.pglock.LockRefusedException;
import dev.pglock.LockState;
import dev.pglock.LockStorageException;
import dev.pglock.LockStrategy;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SessionSettings;
import dev.pglock.jdbc.SqlStates;
import dev.pglock.jdbc.SqlWork;
import dev.pglock.jdbc.Telling;
import dev.pglock.jdbc.Waiters;
import dev.pglock.lease.LeaseRows;
import dev.pglock.lease.Pauses;
import dev.pglock.store.KeyDerivation;
import dev.pglock.store.StoreIdentity;
import dev.pglock.store.WakeUps;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Who holds keys, seen from outside: the server's lock table, joined with what the rows say. A key tells no name: known
 * are the names that have a row, and those that this replica holds.
 */
final class KeyHolders {

    private static final Logger log = LoggerFactory.getLogger(KeyHolders.class);

    private static final int LOOKS = 3;
    private static final Duration BETWEEN_LOOKS = Duration.ofMillis(100);

    private final ConnectionSource reads;
    private final StoreIdentity identity;
    private final KeyDerivation keys;
    private final AdvisorySettings settings;
    private final LeaseRows rows;
    private final AdvisorySql sql;
    private final Telling telling = new Telling();

    /** How the application names of this namespace's sessions begin. */
    private final String prefix;

    KeyHolders(ConnectionSource reads, StoreIdentity identity, KeyDerivation keys, AdvisorySettings settings) {
        this.sql = new AdvisorySql(settings.table());
        this.reads = reads;
        this.identity = identity;
        this.keys = keys;
        this.settings = settings;
        this.rows = new LeaseRows(settings.table());
        this.prefix = SessionSettings.prefix(identity.namespace());
    }

    /** A session that holds a key. */
    private record Holder(int pid, @Nullable String application) {}

    // ---- for a claim

    /** Why a key was not to be had: by the columns {@code holder_pid} and {@code holder}. */
    Denial denial(String name, ResultSet row) throws SQLException {
        Integer pid = row.getObject("holder_pid", Integer.class);
        if (pid == null) {
            return Denial.of(name, DenialReason.KEY_BUSY);
        }
        return denial(name, new Holder(pid, row.getString("holder")));
    }

    /** Why a key is not to be had at this moment; null: as far as a look can tell, it is. */
    @Nullable
    Denial denial(String name, long key) {
        return this.<@Nullable Denial>run("Lock '" + name + "' could not be claimed", (connection, unanswered) -> {
            Holder holder = holders(connection, key).get(key);
            return holder == null ? null : denial(name, holder);
        });
    }

    private Denial denial(String name, Holder holder) {
        return new Denial(
                name, isOurs(holder) ? DenialReason.HELD : DenialReason.KEY_BUSY, describe(holder), null, null);
    }

    private boolean isOurs(Holder holder) {
        return holder.application() != null && holder.application().startsWith(prefix);
    }

    private String describe(Holder holder) {
        return holder.application() != null && isOurs(holder)
                ? holder.application().substring(prefix.length())
                : "session " + holder.pid() + " (" + holder.application() + ")";
    }

    // ---- looking

    boolean isTableThere() {
        return run("The lease table could not be looked for", (connection, unanswered) -> {
            try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.TABLE_EXISTS)) {
                statement.setString(1, settings.table().sql());
                try (ResultSet row = statement.executeQuery()) {
                    return row.next() && row.getBoolean("table_there");
                }
            }
        });
    }

    Optional<LockInfo> find(String name, Map<Long, Held> own) {
        long key = keys.key(identity.namespace(), name);
        return run("Lock '" + name + "' could not be looked up", (connection, unanswered) -> {
            Holder holder = holders(connection, key).get(key);
            LockInfo row = rows(connection, name).stream().findFirst().orElse(null);
            return Optional.ofNullable(holder == null ? row : held(name, holder, own.get(key), row));
        });
    }

    /**
     * All locks of the namespace.
     *
     * @param own what this replica holds
     * @param isTick whether a key only remembers a tick; those of other replicas cannot be told from locks without a name
     */
    List<LockInfo> findAll(Map<Long, Held> own, LongPredicate isTick) {
        return run("The advisory locks could not be looked up", (connection, unanswered) -> {
            Map<Long, Holder> holders = holders(connection, null);
            Map<String, LockInfo> found = new TreeMap<>();
            Map<Long, String> names = new HashMap<>();
            own.forEach((key, tenure) -> names.put(key, tenure.name()));
            for (LockInfo row : rows(connection, null)) {
                found.put(row.name(), row);
                names.put(keys.key(identity.namespace(), row.name()), row.name());
            }
            holders.forEach((key, holder) -> {
                if (isTick.test(key)) {
                    return;
                }
                String name = names.getOrDefault(key, nameless(key));
                found.put(name, held(name, holder, own.get(key), found.get(name)));
            });
            return List.copyOf(found.values());
        });
    }

    private static String nameless(long key) {
        return "key " + key;
    }

    /** Without the table there are no rows, and nothing is remembered. */
    private List<LockInfo> rows(Connection connection, @Nullable String name) throws SQLException {
        try {
            return rows.read(connection, identity.namespace(), name).stream()
                    .map(KeyHolders::withoutTenure)
                    .toList();
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE) {
                return List.of();
            }
            throw e;
        }
    }

    /** A row that no lease holds is one of ours. */
    private static LockInfo withoutTenure(LockInfo row) {
        return row.state() == LockState.HELD
                ? row
                : new LockInfo(
                        row.name(),
                        LockStrategy.ADVISORY,
                        row.state(),
                        row.holder(),
                        row.fence(),
                        row.acquiredAt(),
                        row.expiresAt(),
                        row.data(),
                        row.lastRun(),
                        row.completed(),
                        row.paused(),
                        List.of());
    }

    private LockInfo held(String name, Holder holder, @Nullable Held own, @Nullable LockInfo row) {
        if (row != null && row.state() == LockState.HELD) {
            // By lease: whoever has the key at this moment is asking for it, or commits under it.
            return row;
        }
        if (own != null && own.isKept()) {
            return new LockInfo(
                    name,
                    LockStrategy.ADVISORY,
                    LockState.HOLD,
                    null,
                    own.fence(),
                    own.acquiredAt(),
                    null,
                    null,
                    null,
                    List.of(),
                    row == null ? null : row.paused(),
                    List.of());
        }
        return new LockInfo(
                name,
                LockStrategy.ADVISORY,
                LockState.HELD,
                describe(holder),
                own == null ? null : own.fence(),
                own == null ? null : own.acquiredAt(),
                null,
                row == null ? null : row.data(),
                row == null ? null : row.lastRun(),
                row == null ? List.of() : row.completed(),
                row == null ? null : row.paused(),
                List.of());
    }

    /** Whoever holds that key, or null: all sessions of the namespace. */
    private Map<Long, Holder> holders(Connection connection, @Nullable Long key) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.HOLDERS)) {
            statement.setObject(1, key, Types.BIGINT);
            statement.setString(2, prefix);
            Map<Long, Holder> holders = new HashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    holders.put(row.getLong("key"), new Holder(row.getInt("pid"), row.getString("application_name")));
                }
            }
            return holders;
        }
    }

    /** The server's time, if that session holds that key at it. */
    static @Nullable Instant timeIfHeldBy(Connection connection, int pid, long key) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.TIME_IF_HELD_BY)) {
            statement.setInt(1, pid);
            statement.setLong(2, key);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? LockSession.instant(row, "now") : null;
            }
        }
    }

    /** Asks about sessions that are busy with work. */
    <T extends @Nullable Object> T ask(ConnectionSource.Lane lane, Duration budget, SqlWork<T> work) {
        try {
            return reads.run(lane, budget, work);
        } catch (SQLException e) {
            throw new LockStorageException("A lock's session could not be looked up: " + e.getMessage(), e);
        }
    }

    Map<Integer, List<String>> waiting() {
        return run(
                "Who waits for locks could not be looked up",
                (connection, unanswered) -> Waiters.of(connection, identity.namespace()));
    }

    // ---- operators

    /** Only where there is a row can an advisory lock be paused. */
    boolean pause(String name, @Nullable String reason) {
        return run(
                "Lock '" + name + "' could not be " + (reason == null ? "resumed" : "paused"),
                (connection, unanswered) -> ifTableIsThere(
                        "A pause",
                        name,
                        () -> Pauses.set(connection, settings.table(), identity.namespace(), name, reason)));
    }

    /** Whoever holds the key reads it beside its next heartbeat. */
    boolean resign(String name, long key, String reason) {
        return run("The holder of lock '" + name + "' could not be asked for it", (connection, unanswered) -> {
            Holder holder = lasting(connection, key);
            if (holder == null || !isOurs(holder)) {
                return false;
            }
            return ifTableIsThere("What an operator asks", name, () -> {
                try (PreparedStatement statement = connection.prepareStatement(sql.resign)) {
                    statement.setString(1, identity.namespace());
                    statement.setString(2, name);
                    statement.setString(3, reason);
                    return statement.executeUpdate() > 0;
                }
            });
        });
    }

    private interface Writing {
        boolean write() throws SQLException;
    }

    private boolean ifTableIsThere(String what, String name, Writing writing) throws SQLException {
        try {
            return writing.write();
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_TABLE) {
                throw RowMemory.missing(settings.table(), what, name);
            }
            throw e;
        }
    }

    boolean forceRelease(String name, long key, boolean now, Map<Long, Held> own) {
        return telling.tellIfPossible(form ->
                run("Lock '" + name + "' could not be released by force", (connection, unanswered) -> {
                    Holder holder = lasting(connection, key);
                    if (holder == null) {
                        return false;
                    }
                    Map<Long, String> locks = locksOn(connection, holder, own);
                    Collection<String> all = locks.values();
                    if (!now) {
                        throw new LockRefusedException("Advisory lock '" + name + "' is held by " + describe(holder)
                                + " and can only be released by force at"
                                + " once (now), because that ends the whole session and with it: " + all);
                    }
                    log.warn(
                            "Session {} of {} is ended by force, and with it its locks: {}",
                            holder.pid(),
                            describe(holder),
                            all);
                    try (PreparedStatement statement = connection.prepareStatement(form.apply(AdvisorySql.TERMINATE))) {
                        statement.setInt(1, holder.pid());
                        statement.setArray(2, waitKeys(connection, locks.keySet()));
                        try (ResultSet row = statement.executeQuery()) {
                            return row.next() && row.getBoolean("ended");
                        }
                    }
                }));
    }

    /**
     * Whoever holds the key for longer than a statement. A lease that is being claimed at this moment has it too, by the one
     * who was told of the release a moment ago for instance, and must not pay for it with his session.
     */
    private @Nullable Holder lasting(Connection connection, long key) throws SQLException {
        Holder holder = holders(connection, key).get(key);
        for (int look = 1; look < LOOKS && holder != null; look++) {
            LockSupport.parkNanos(BETWEEN_LOOKS.toNanos());
            Holder again = holders(connection, key).get(key);
            holder = holder.equals(again) ? holder : null;
        }
        return holder;
    }

    private static Array waitKeys(Connection connection, Set<Long> keys) throws SQLException {
        return connection.createArrayOf(
                "int4", keys.stream().map(WakeUps::waitKey).toArray());
    }

    /** By key. */
    private Map<Long, String> locksOn(Connection connection, Holder holder, Map<Long, Held> own) throws SQLException {
        Map<Long, String> names = new HashMap<>();
        for (LockInfo row : rows(connection, null)) {
            names.put(keys.key(identity.namespace(), row.name()), row.name());
        }
        own.forEach((key, tenure) -> names.put(key, tenure.name()));
        try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.HELD_BY)) {
            statement.setInt(1, holder.pid());
            Map<Long, String> all = new LinkedHashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    long key = row.getLong("key");
                    all.put(key, names.getOrDefault(key, nameless(key)));
                }
            }
            return all;
        }
    }

    private <T extends @Nullable Object> T run(String what, SqlWork<T> work) {
        try {
            return reads.run(ConnectionSource.Lane.WORK, settings.timeouts().work(), work);
        } catch (SQLException e) {
            throw new LockStorageException(what + ": " + e.getMessage(), e);
        }
    }
}
