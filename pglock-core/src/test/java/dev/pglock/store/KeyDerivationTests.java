package dev.pglock.store;

import static org.assertj.core.api.Assertions.assertThat;

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
}
