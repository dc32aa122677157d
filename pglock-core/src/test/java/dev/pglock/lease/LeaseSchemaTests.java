package dev.pglock.lease;

import static dev.pglock.lease.LeaseStores.granted;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.LockStorageException;
import dev.pglock.jdbc.ConnectionSpec;
import dev.pglock.store.StoreIdentity;
import dev.pglock.testing.Concurrently;
import dev.pglock.testing.TestDatabase;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class LeaseSchemaTests {

    private static final LeaseTable TABLE = LeaseTable.parse("pglock_lease");

    private final LeaseStores stores = LeaseStores.withoutTable();
    private final TestDatabase database = stores.database();
    private final String role = database.server().newRole();

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    private LeaseSchema schema(LeaseTable table) {
        return new LeaseSchema(stores.connections("schema", stores.spec(database.url()), 1), table);
    }

    private LeaseSchema schemaAsRole() {
        return new LeaseSchema(
                stores.connections("schema", () -> ConnectionSpec.of(database.url(), role, role), 1), TABLE);
    }

    private LeaseStore store(LeaseTable table) {
        return stores.store(
                StoreIdentity.random(LeaseStores.NAMESPACE, "A"), stores.spec(database.url()), table, Duration.ZERO);
    }

    @Test
    void alwaysCreatesTheTableOnce() {
        for (int i = 0; i < 2; i++) {
            assertThat(schema(TABLE).initialize(SchemaMode.ALWAYS)).isEqualTo(new LeaseTable("public", "pglock_lease"));
        }
        granted(store(TABLE), "name");
        assertThat(schema(TABLE).initialize(SchemaMode.VALIDATE)).isEqualTo(new LeaseTable("public", "pglock_lease"));
    }

    @RepeatedTest(3)
    void twentyReplicasThatStartAtOnceCreateItTogether() throws Exception {
        List<LeaseSchema> schemas =
                IntStream.range(0, 20).mapToObj(i -> schema(TABLE)).toList();

        List<LeaseTable> tables = Concurrently.run(20, i -> () -> schemas.get(i).initialize(SchemaMode.ALWAYS));

        assertThat(tables).containsOnly(new LeaseTable("public", "pglock_lease"));
    }

    @ParameterizedTest
    @EnumSource(
            value = SchemaMode.class,
            names = {"ALWAYS", "VALIDATE"})
    void noRightToCreateIsNeededWhereTheTableIs(SchemaMode mode) {
        database.execute(LeaseSchema.ddl(TABLE));
        database.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
        database.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON pglock_lease TO " + role);

        schemaAsRole().initialize(mode);
    }

    @Test
    void whoMayNotCreateItIsTold() {
        database.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC");

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schemaAsRole().initialize(SchemaMode.ALWAYS))
                .withMessageContaining("permission denied for schema public")
                .withMessageContaining("CREATE TABLE")
                .withMessageContaining("GRANT SELECT, INSERT, UPDATE, DELETE ON \"pglock_lease\"")
                .withMessageContaining("pglock.lease.initialize-schema");
    }

    @Test
    void aMissingTableIsNotValid() {
        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schema(TABLE).initialize(SchemaMode.VALIDATE))
                .withMessageContaining("is missing")
                .withMessageContaining("CREATE TABLE")
                .withMessageContaining("GRANT ")
                .withMessageContaining("pglock.lease.initialize-schema=always");
    }

    @Test
    void aMissingSchemaIsToldLikeAMissingTable() {
        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schema(LeaseTable.parse("locks.pglock_lease")).initialize(SchemaMode.ALWAYS))
                .withMessageContaining("schema \"locks\" does not exist");
    }

    @Test
    void aMissingPrivilegeIsNamed() {
        database.execute(LeaseSchema.ddl(TABLE));
        database.execute("GRANT SELECT, UPDATE ON pglock_lease TO " + role);

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schemaAsRole().initialize(SchemaMode.ALWAYS))
                .withMessageContaining("role " + role + " has no right to INSERT, DELETE")
                .withMessageContaining(
                        "GRANT SELECT, INSERT, UPDATE, DELETE ON \"public\".\"pglock_lease\" TO " + role);
    }

    @Test
    void aSchemaThatTheRoleMayNotUseIsTold() {
        database.execute("CREATE SCHEMA locks");
        LeaseTable table = LeaseTable.parse("locks.pglock_lease");
        database.execute(LeaseSchema.ddl(table));

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> new LeaseSchema(
                                stores.connections("x", () -> ConnectionSpec.of(database.url(), role, role), 1), table)
                        .initialize(SchemaMode.VALIDATE))
                .withMessageContaining("permission denied for schema locks")
                .withMessageContaining("GRANT USAGE ON SCHEMA \"locks\"");
    }

    @Test
    void timestampsWithoutATimeZoneAreRefused() {
        database.execute(LeaseSchema.ddl(TABLE).replaceFirst("expires_at +timestamptz", "expires_at timestamp"));

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schema(TABLE).initialize(SchemaMode.ALWAYS))
                .withMessageContaining(
                        "column expires_at is timestamp without time zone but must be timestamp with time zone")
                .withMessageContaining("ALTER TABLE \"public\".\"pglock_lease\" ALTER COLUMN expires_at TYPE");
    }

    @Test
    void everyMissingColumnIsListedWithItsRemedyAndTheRemedyWorks() {
        database.execute(LeaseSchema.ddl(TABLE));
        List<SchemaScript.Column> columns = SchemaScript.load().columns();
        assertThat(columns).hasSize(22);
        for (SchemaScript.Column column : columns) {
            database.execute("ALTER TABLE pglock_lease DROP COLUMN " + column.name());
            String remedy =
                    "ALTER TABLE \"public\".\"pglock_lease\" ADD COLUMN " + column.name() + " " + column.definition();

            assertThatExceptionOfType(LeaseSchemaException.class)
                    .isThrownBy(() -> schema(TABLE).initialize(SchemaMode.ALWAYS))
                    .withMessageContaining("column " + column.name() + " is missing")
                    .withMessageContaining(remedy);

            database.execute(remedy);
            database.execute("ALTER TABLE pglock_lease DROP CONSTRAINT IF EXISTS pglock_lease_pkey;"
                    + " ALTER TABLE pglock_lease ADD PRIMARY KEY (namespace, name)");
        }
        schema(TABLE).initialize(SchemaMode.VALIDATE);
    }

    @Test
    void anotherPrimaryKeyIsRefused() {
        database.execute(LeaseSchema.ddl(TABLE));
        database.execute("ALTER TABLE pglock_lease DROP CONSTRAINT pglock_lease_pkey");

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schema(TABLE).initialize(SchemaMode.VALIDATE))
                .withMessageContaining("its primary key is not (namespace, name)");
    }

    @Test
    void aViewIsNoTable() {
        database.execute(LeaseSchema.ddl(LeaseTable.parse("real")));
        database.execute("CREATE VIEW pglock_lease AS SELECT * FROM real");

        assertThatExceptionOfType(LeaseSchemaException.class)
                .isThrownBy(() -> schema(TABLE).initialize(SchemaMode.VALIDATE))
                .withMessageContaining("no table");
    }

    @Test
    void columnsOfALaterVersionDisturbNobody() {
        database.execute(LeaseSchema.ddl(TABLE));
        database.execute("ALTER TABLE pglock_lease ADD COLUMN of_tomorrow text");

        schema(TABLE).initialize(SchemaMode.VALIDATE);
        LeaseStore store = store(TABLE);
        store.release(LeaseStores.release("name", granted(store, "name")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"locks", "locks.lease", "\"Odd \"\"Locks\".\"the $ 'lease'?\"", "locks.pglock_lease"})
    void theTableMayHaveAnyName(String name) {
        database.execute("CREATE SCHEMA locks; CREATE SCHEMA \"Odd \"\"Locks\"");
        LeaseTable table = schema(LeaseTable.parse(name)).initialize(SchemaMode.ALWAYS);

        LeaseStore store = store(table);
        var lock = granted(store, "name");
        assertThat(store.renew(
                        List.of(LeaseStores.renewal("name", lock)),
                        Duration.ofSeconds(1),
                        dev.pglock.store.LockStore.Caller.HOLDER))
                .hasSize(1);
        assertThat(store.release(LeaseStores.release("name", lock))).isTrue();
        assertThat(store.findAll()).hasSize(1);
        assertThat(store.forceRelease("name", LeaseStores.key("name"), true)).isFalse();
        assertThat(database.number("SELECT count(*) FROM " + table.sql())).isEqualTo(1);
    }

    @Test
    void theSchemaIsThatOfTheStartHoweverTheSearchPathChanges() {
        database.execute("CREATE SCHEMA one; CREATE SCHEMA two");
        database.execute("ALTER DATABASE " + database.name() + " SET search_path = one, public");
        LeaseTable table = schema(TABLE).initialize(SchemaMode.ALWAYS);
        assertThat(table).isEqualTo(new LeaseTable("one", "pglock_lease"));
        LeaseStore store = store(table);

        database.execute("ALTER DATABASE " + database.name() + " SET search_path = two, public");
        database.terminate("pglock:%");

        granted(store, "name");
        assertThat(database.number("SELECT count(*) FROM one.pglock_lease")).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"pglock_lease", "public.pglock_lease"})
    void aTableThatComesLaterIsFoundThen(String name) {
        LeaseTable table = schema(LeaseTable.parse(name)).initialize(SchemaMode.NEVER);
        LeaseStore store = store(table);
        for (int i = 0; i < 3; i++) {
            assertThatExceptionOfType(LockStorageException.class)
                    .isThrownBy(() -> granted(store, "name"))
                    .withMessageContaining("does not exist")
                    .withMessageContaining("pglock.lease.initialize-schema=always");
        }
        database.execute(LeaseSchema.ddl(table));

        granted(store, "name");
    }

    @Test
    void aLostRightIsToldAtRunTime() {
        database.execute(LeaseSchema.ddl(TABLE));
        LeaseStore store = stores.store(
                StoreIdentity.random(LeaseStores.NAMESPACE, "A"),
                () -> ConnectionSpec.of(database.url(), role, role),
                LeaseStores.TABLE,
                Duration.ZERO);

        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> granted(store, "name"))
                .withMessageContaining("permission denied")
                .withMessageContaining("needs SELECT, INSERT, UPDATE and DELETE");
    }

    @Test
    void aDatabaseThatCannotBeReachedIsNoMissingTable() {
        LeaseSchema nowhere = new LeaseSchema(
                stores.connections("x", () -> ConnectionSpec.of("jdbc:postgresql://localhost:1/x", "x", "secret"), 1),
                TABLE);

        assertThatExceptionOfType(LockStorageException.class)
                .isThrownBy(() -> nowhere.initialize(SchemaMode.ALWAYS))
                .withMessageNotContaining("secret");
    }
}
