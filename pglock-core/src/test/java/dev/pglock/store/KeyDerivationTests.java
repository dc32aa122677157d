package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

/** Keys are frozen: a changed key is a double run in a rolling deploy. */
class KeyDerivationTests {

    @Test
    void sha256AgreesWithGokit() {
        assertThat(KeyDerivation.SHA256.key("orders.daily-rollup")).isEqualTo(-7132652647757890940L);
        assertThat(KeyDerivation.SHA256.key("", "orders.daily-rollup")).isEqualTo(-7132652647757890940L);
    }

    @Test
    void aNamespaceMakesAnotherKey() {
        assertThat(KeyDerivation.SHA256.key("orders", "daily-rollup"))
                .isEqualTo(KeyDerivation.SHA256.key("orders:daily-rollup"))
                .isNotEqualTo(KeyDerivation.SHA256.key("daily-rollup"));
    }

    @Test
    void sqlxAgreesWithRust() {
        assertThat(KeyDerivation.SQLX.key("my first Postgres advisory lock!")).isEqualTo(-5560419505042474287L);
        assertThat(KeyDerivation.SQLX.key("", "my first Postgres advisory lock!"))
                .isEqualTo(-5560419505042474287L);
    }

    /** Frozen: computed once by other means, from the bytes of the name in UTF-8. */
    @Test
    void noLocaleAndNoCharsetHasASay() {
        Locale before = Locale.getDefault();
        try {
            for (Locale locale : List.of(Locale.ROOT, Locale.forLanguageTag("tr-TR"), Locale.JAPAN)) {
                Locale.setDefault(locale);
                assertThat(KeyDerivation.SHA256.key("İıß😀")).isEqualTo(5883113121077306801L);
                assertThat(KeyDerivation.SQLX.key("İıß😀")).isEqualTo(8278602703367915720L);
            }
        } finally {
            Locale.setDefault(before);
        }
    }
}
