package dev.pglock.advisory;

import dev.pglock.LockRefusedException;
import dev.pglock.lease.LeaseTable;
import dev.pglock.store.Release;
import dev.pglock.store.StoreIdentity;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What must outlive a lock is written to its row, where the lease table exists: a minimum hold, a completed version, a
 * payload. Always under the lock's key, and for no other lock.
 */
final class RowMemory {

    private final StoreIdentity identity;
    private final LeaseTable table;
    private final AdvisorySql sql;

    /** Whether the table was there when we looked last; every claim looks again. */
    private volatile boolean there = true;

    RowMemory(StoreIdentity identity, LeaseTable table, AdvisorySql sql) {
        this.identity = identity;
        this.table = table;
        this.sql = sql;
    }

    boolean isThere() {
        return there;
    }

    void isThere(boolean seen) {
        there = seen;
    }

    /** Asks only when it was missing before. */
    boolean isThere(Connection connection) throws SQLException {
        if (!there) {
            try (PreparedStatement statement = connection.prepareStatement(AdvisorySql.TABLE_EXISTS)) {
                statement.setString(1, table.sql());
                try (ResultSet row = statement.executeQuery()) {
                    there = row.next() && row.getBoolean("table_there");
                }
            }
        }
        return there;
    }

    /** Refuses what only a row can remember. */
    void require(Connection connection, String name, String what) throws SQLException {
        if (!isThere(connection)) {
            throw missing(table, what, name);
        }
    }

    static LockRefusedException missing(LeaseTable table, String what, String name) {
        return new LockRefusedException(
                what + " of lock '" + name + "' is remembered in the lease table, but there is no " + table
                        + ": create it, with dev/pglock/lease/schema.sql for instance, or do without");
    }

    void payload(Connection connection, Held tenure, @Nullable String data) throws SQLException {
        require(connection, tenure.name(), "The payload");
        remember(connection, tenure, true, data);
    }

    void end(Connection connection, Held tenure, Release release) throws SQLException {
        remember(connection, tenure, false, null);
        try (PreparedStatement statement = connection.prepareStatement(sql.rememberEnd)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, release.name());
            if (release.minHold() == null) {
                statement.setNull(3, Types.DOUBLE);
            } else {
                statement.setDouble(3, release.minHold().toNanos() / 1e9);
            }
            statement.setString(4, release.completed());
            statement.setString(5, identity.label());
            statement.setString(6, release.outcome().name());
            statement.setString(7, release.error());
            int ignored = statement.executeUpdate();
        }
    }

    /** Which of these tenures operators have asked for since their grant, and why. */
    Map<String, String> askedFor(Connection connection, List<Held> tenures) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.askedFor)) {
            setTenures(connection, statement, tenures);
            Map<String, String> askedFor = new HashMap<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    askedFor.put(row.getString("name"), row.getString("reason"));
                }
            }
            return askedFor;
        }
    }

    /** Sets names, times of their grants, and the namespace, in this order. */
    void setTenures(Connection connection, PreparedStatement statement, List<Held> tenures) throws SQLException {
        Object[] names = tenures.stream().map(Held::name).toArray();
        Object[] times =
                tenures.stream().map(tenure -> tenure.acquiredAt().toString()).toArray();
        statement.setArray(1, connection.createArrayOf("text", names));
        statement.setArray(2, connection.createArrayOf("timestamptz", times));
        statement.setString(3, identity.namespace());
    }

    private void remember(Connection connection, Held tenure, boolean replaces, @Nullable String data)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql.remember)) {
            statement.setString(1, identity.namespace());
            statement.setString(2, tenure.name());
            statement.setLong(3, tenure.fence());
            statement.setObject(4, tenure.acquiredAt().atOffset(ZoneOffset.UTC));
            statement.setString(5, data);
            statement.setBoolean(6, replaces);
            int ignored = statement.executeUpdate();
        }
    }
}
