package dev.pglock.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LeaseTableTests {

    @ParameterizedTest
    @CsvSource(
            quoteCharacter = '`',
            delimiter = '|',
            value = {
                "pglock_lease | \"pglock_lease\"",
                "Locks.Lease | \"locks\".\"lease\"",
                "\"Locks\".\"Lease\" | \"Locks\".\"Lease\"",
                "\"a.b\" | \"a.b\"",
                "\"a\"\"b\".c$1 | \"a\"\"b\".\"c$1\"",
                "größe | \"größe\""
            })
    void aNameIsReadAsTheServerWould(String written, String sql) {
        assertThat(LeaseTable.parse(written).sql()).isEqualTo(sql);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                ".",
                "a.",
                ".a",
                "a..b",
                "a.b.c",
                "1a",
                "a b",
                "a;drop table b",
                "\"a",
                "a\"b\"",
                "\"\"",
                "a--",
                "a'",
                "\"a\u0000b\"",
                "this_name_is_longer_than_the_sixty_three_bytes_that_the_server_keeps"
            })
    void whatIsNoNameIsRefused(String written) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LeaseTable.parse(written))
                .withMessageContaining("pglock.lease.table");
    }

    @Test
    void onlyTheTableIsPutIntoAStatement() {
        assertThat(LeaseTable.parse("locks.pglock_lease").in("SELECT 'x' FROM pglock_lease l"))
                .isEqualTo("SELECT 'x' FROM \"locks\".\"pglock_lease\" l");
    }
}
