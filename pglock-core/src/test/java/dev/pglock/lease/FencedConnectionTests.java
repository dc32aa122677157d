package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.LockLostException;
import dev.pglock.store.ClaimAnswer;
import dev.pglock.store.LockStore.Tenancy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.postgresql.PGStatement;

/** The connection that work under a lease is given. */
class FencedConnectionTests {

    private final LeaseStores stores = LeaseStores.withTable();
    private final LeaseStore a = stores.store("A");
    private final Tenancy held;

    FencedConnectionTests() {
        ClaimAnswer.Granted lock = LeaseStores.granted(a, "name");
        held = new Tenancy("name", LeaseStores.key("name"), lock.fence());
    }

    @AfterEach
    void close() throws Exception {
        stores.close();
    }

    @Test
    void everyWayToItsConnectionLeadsToTheOneWhoseCommitsAreFenced() throws Exception {
        boolean worked = a.onConnection(held, connection -> {
            try (Statement statement = connection.createStatement();
                    PreparedStatement prepared = connection.prepareStatement("SELECT 1");
                    CallableStatement callable = connection.prepareCall("SELECT 1");
                    ResultSet rows = prepared.executeQuery()) {
                assertThat(List.of(
                                statement.getConnection(),
                                prepared.getConnection(),
                                callable.getConnection(),
                                rows.getStatement().getConnection(),
                                connection.getMetaData().getConnection()))
                        .allMatch(found -> found == connection);
                assertThat(rows.next()).isTrue();
                assertThat(rows.getStatement()).isInstanceOf(PreparedStatement.class);
                assertThat(prepared.unwrap(PGStatement.class)).isNotNull();
                statement.getConnection().commit();

                stores.database().execute("UPDATE pglock_lease SET fence = fence + 1");
                assertThatExceptionOfType(LockLostException.class)
                        .isThrownBy(() -> statement.getConnection().commit());
                stores.database().execute("UPDATE pglock_lease SET fence = fence - 1");
            }
            return true;
        });
        assertThat(worked).isTrue();
    }

    @Test
    void itIsEqualToItselfAndToNothingElse() throws SQLException {
        Map<Connection, Integer> seen = new HashMap<>();
        Set<Statement> statements = new HashSet<>();
        for (int i = 0; i < 2; i++) {
            boolean found = a.onConnection(held, connection -> {
                seen.merge(connection, 1, Integer::sum);
                try (Statement statement = connection.createStatement()) {
                    statements.add(statement);
                    // A list asks the element, where a map looks for the very same one first.
                    return seen.containsKey(connection)
                            && statements.contains(statement)
                            && List.of(connection).contains(connection);
                }
            });
            assertThat(found).isTrue();
        }
        assertThat(seen.values()).containsExactly(1, 1);
        assertThat(statements).hasSize(2);
    }
}
