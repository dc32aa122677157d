package dev.pglock.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SqlStatesTests {

    @ParameterizedTest
    @CsvSource({
        "08006, BROKEN",
        "08001, BROKEN",
        "57P01, BROKEN",
        "57P02, BROKEN",
        "57P03, BROKEN",
        "57P05, BROKEN",
        "25P03, BROKEN",
        "25006, READ_ONLY",
        "26000, STALE_STATEMENT",
        "42P05, STALE_STATEMENT",
        "55P03, BUSY",
        "57014, BUSY",
        "40001, CONFLICT",
        "40P01, CONFLICT",
        "53300, TOO_MANY_CONNECTIONS",
        "42P01, MISSING_TABLE",
        "42501, MISSING_PRIVILEGE",
        "22001, OTHER",
        "28P01, OTHER"
    })
    void aStateHasAMeaning(String state, SqlStates.Kind kind) {
        assertThat(SqlStates.kindOf(new SQLException("x", state))).isEqualTo(kind);
        assertThat(SqlStates.kindOf(new SQLException("a pool's", new SQLException("x", state))))
                .isEqualTo(kind);
    }

    @Test
    void withoutAStateTheCauseTells() {
        assertThat(SqlStates.kindOf(new SQLException("x", new IOException("reset"))))
                .isEqualTo(SqlStates.Kind.BROKEN);
        assertThat(SqlStates.kindOf(new SQLException("x"))).isEqualTo(SqlStates.Kind.OTHER);
        assertThat(SqlStates.kindOf(new SQLTransientConnectionException("pool is empty")))
                .isEqualTo(SqlStates.Kind.OTHER);
    }

    @ParameterizedTest
    @CsvSource({"PT0.5S, 250, 125", "PT2S, 666, 333", "PT6S, 2000, 1000", "PT30S, 5000, 1000", "PT1H, 5000, 1000"})
    void timeoutsFollowFromTheLease(Duration lease, long statement, long lock) {
        JdbcTimeouts timeouts = JdbcTimeouts.of(lease);

        assertThat(timeouts.statement().toMillis()).isEqualTo(statement);
        assertThat(timeouts.lock().toMillis()).isEqualTo(lock);
        assertThat(timeouts.work().toMillis()).isCloseTo(statement * 5 / 2, within(2L));
    }

    @Test
    void namesAreCleanedAndCut() {
        JdbcTimeouts timeouts = JdbcTimeouts.of(Duration.ofSeconds(2));

        assertThat(SessionSettings.of("orders", "größe\n", timeouts).applicationName())
                .isEqualTo("pglock:orders:gr??e?");
        assertThat(SessionSettings.of("x".repeat(80), "pod", timeouts).applicationName())
                .hasSize(63);
    }
}
