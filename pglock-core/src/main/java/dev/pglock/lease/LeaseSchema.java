package dev.pglock.lease;

import dev.pglock.LockStorageException;
import dev.pglock.jdbc.ConnectionSource;
import dev.pglock.jdbc.SqlStates;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates, finds and checks the lease table. For start-up; thread-safe. */
public final class LeaseSchema {

    private static final Logger log = LoggerFactory.getLogger(LeaseSchema.class);

    /** Others may be creating it at this moment. */
    private static final Duration BUDGET = Duration.ofSeconds(30);

    private static final List<String> PRIVILEGES = List.of("SELECT", "INSERT", "UPDATE", "DELETE");

    private static final String LOOK = """
            SELECT n.nspname, c.relname, c.relkind IN ('r', 'p') AS is_table,
                   ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
                         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS columns,
                   ARRAY(SELECT format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
                         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS types,
                   ARRAY(SELECT a.attname::text FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a
                                ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                         WHERE i.indrelid = c.oid AND i.indisprimary) AS key,
                   ARRAY(SELECT p FROM unnest(?::text[]) AS p WHERE NOT has_table_privilege(c.oid, p)) AS lacking,
                   quote_ident(current_user) AS role
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = to_regclass(?)
            """;

    // One batch and with that one transaction. Without the lock, simultaneous CREATEs fail over pg_type's unique index
    // in spite of IF NOT EXISTS; with it the later ones find the table. The timeouts of our sessions are too short for
    // it.
    private static final String CREATE_ONCE = """
            SELECT set_config('lock_timeout', '10s', true), set_config('statement_timeout', '10s', true);
            SELECT pg_advisory_xact_lock(1885825124, 1);
            """;

    private final ConnectionSource connections;
    private final LeaseTable table;
    private final SchemaScript script = SchemaScript.load();

    /**
     * Creates it. Nothing is asked yet.
     *
     * @param connections how to reach the database
     * @param table the table's name
     */
    public LeaseSchema(ConnectionSource connections, LeaseTable table) {
        this.connections = connections;
        this.table = table;
    }

    /**
     * Does what is to be done at start-up. Blocks for the database.
     *
     * @param mode what that is
     * @return the table with its real schema, which is to be used from now on; with {@link SchemaMode#NEVER} and while it
     *     is missing, the name as it was given
     * @throws LeaseSchemaException if the table is missing or unfit; the message says what to do
     * @throws LockStorageException if the database could not be asked
     */
    public LeaseTable initialize(SchemaMode mode) {
        if (mode == SchemaMode.NEVER) {
            return table;
        }
        try {
            Found found = look();
            if (found == null && mode == SchemaMode.ALWAYS) {
                found = create();
            }
            if (found == null) {
                throw missing(null);
            }
            check(found);
            return found.table();
        } catch (SQLException e) {
            if (SqlStates.kindOf(e) == SqlStates.Kind.MISSING_PRIVILEGE) {
                throw missing(e);
            }
            throw new LockStorageException("The lease table " + table + " could not be checked: " + e.getMessage(), e);
        }
    }

    /**
     * The statement that creates the table.
     *
     * @param table its name
     * @return DDL, usable as a migration
     */
    public static String ddl(LeaseTable table) {
        return SchemaScript.load().ddl(table);
    }

    private @Nullable Found create() throws SQLException {
        try {
            connections.run(ConnectionSource.Lane.WORK, BUDGET, (connection, unanswered) -> {
                try (Statement statement = connection.createStatement()) {
                    return statement.execute(CREATE_ONCE + script.ddl(table));
                }
            });
        } catch (SQLException e) {
            // Somebody with more rights, or a migration that knows nothing of our lock, may have been faster.
            Found found = look();
            if (found == null && isForSomebodyElse(e)) {
                throw missing(e);
            }
            if (found == null) {
                throw e;
            }
            return found;
        }
        Found found = look();
        if (found != null) {
            log.info("Created the lease table {}", found.table());
        }
        return found;
    }

    /** Missing rights, or a schema that is missing: nothing that gets better by itself. */
    private static boolean isForSomebodyElse(SQLException e) {
        return SqlStates.kindOf(e) == SqlStates.Kind.MISSING_PRIVILEGE || "3F000".equals(e.getSQLState());
    }

    private @Nullable Found look() throws SQLException {
        return connections.run(ConnectionSource.Lane.WORK, BUDGET, (connection, unanswered) -> look(connection, table));
    }

    /** Where the table really is; null if it is missing. */
    static @Nullable LeaseTable resolve(Connection connection, LeaseTable table) throws SQLException {
        Found found = look(connection, table);
        return found == null ? null : found.table();
    }

    private static @Nullable Found look(Connection connection, LeaseTable table) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(LOOK)) {
            statement.setArray(1, connection.createArrayOf("text", PRIVILEGES.toArray()));
            statement.setString(2, table.sql());
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? Found.read(row) : null;
            }
        }
    }

    private void check(Found found) {
        List<String> problems = new ArrayList<>();
        List<String> remedies = new ArrayList<>();
        String name = found.table().sql();
        if (!found.isTable()) {
            problems.add("it is a view or something else that is no table");
        }
        for (SchemaScript.Column column : script.columns()) {
            String type = found.columns().get(column.name());
            if (type == null) {
                problems.add("column " + column.name() + " is missing");
                remedies.add("ALTER TABLE " + name + " ADD COLUMN " + column.name() + " " + column.definition() + ";");
            } else if (!type.equals(column.type())) {
                problems.add("column " + column.name() + " is " + type + " but must be " + column.type());
                remedies.add("ALTER TABLE " + name + " ALTER COLUMN " + column.name() + " TYPE " + column.type()
                        + (type.startsWith("timestamp")
                                ? " USING " + column.name() + " AT TIME ZONE 'UTC'; -- or the zone it was written in"
                                : ";"));
            }
        }
        if (!found.key().equals(Set.of("namespace", "name"))) {
            problems.add("its primary key is not (namespace, name)");
            remedies.add("ALTER TABLE " + name + " ADD PRIMARY KEY (namespace, name);");
        }
        if (!found.lacking().isEmpty()) {
            problems.add("role " + found.role() + " has no right to " + String.join(", ", found.lacking()));
            remedies.add(grants(found.table(), found.role()));
        }
        if (!problems.isEmpty()) {
            throw new LeaseSchemaException(
                    "The lease table " + name + " cannot be used:\n  - " + String.join("\n  - ", problems)
                            + "\n\nWhat to hand to whoever administers the database:\n\n" + String.join("\n", remedies)
                            + "\n\nThe whole table, for comparison:\n\n" + script.ddl(found.table())
                            + "\n\nAnother table can be named by pglock.lease.table; pglock.lease.initialize-schema=never"
                            + " skips this check.",
                    null);
        }
    }

    private LeaseSchemaException missing(@Nullable SQLException cause) {
        return new LeaseSchemaException(
                "The lease table " + table + " is missing"
                        + (cause == null ? "" : " or out of reach: " + cause.getMessage())
                        + "\n\nWhat to hand to whoever administers the database, or to add to its migrations:\n\n"
                        + script.ddl(table) + "\n" + grants(table, "the_role_of_this_application")
                        + "\n\nOr set pglock.lease.initialize-schema=always, with a role that may create it; or"
                        + " pglock.lease.initialize-schema=never, if it is created later.",
                cause);
    }

    private static String grants(LeaseTable table, String role) {
        return "GRANT USAGE ON SCHEMA " + table.schemaSql() + " TO " + role + ";\n"
                + "GRANT SELECT, INSERT, UPDATE, DELETE ON " + table.sql() + " TO " + role + ";";
    }

    /**
     * What is there.
     *
     * @param columns types by name
     * @param lacking the privileges that our role does not have
     */
    private record Found(
            LeaseTable table,
            boolean isTable,
            Map<String, String> columns,
            Set<String> key,
            List<String> lacking,
            String role) {

        static Found read(ResultSet row) throws SQLException {
            List<String> names = strings(row, "columns");
            List<String> types = strings(row, "types");
            Map<String, String> columns = new LinkedHashMap<>();
            for (int i = 0; i < names.size(); i++) {
                columns.put(names.get(i), types.get(i));
            }
            return new Found(
                    new LeaseTable(row.getString("nspname"), row.getString("relname")),
                    row.getBoolean("is_table"),
                    columns,
                    Set.copyOf(strings(row, "key")),
                    strings(row, "lacking"),
                    row.getString("role"));
        }

        private static List<String> strings(ResultSet row, String column) throws SQLException {
            return List.of((String[]) row.getArray(column).getArray());
        }
    }
}
