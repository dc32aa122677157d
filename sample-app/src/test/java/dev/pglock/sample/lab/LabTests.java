package dev.pglock.sample.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.junit.jupiter.api.Test;

/** How the lab is asked for. */
class LabTests {

    @Test
    void aReplicaIsStartedUnlessTheLabIsAskedFor() {
        assertThat(Lab.isAskedFor("--server.port=0")).isFalse();
        assertThat(Lab.isAskedFor("--lab", "--lab.port=9000")).isTrue();
    }

    @Test
    void aPortThatIsTakenIsSaidPlainlyBeforeAnythingIsStarted() throws IOException {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            int port = taken.getLocalPort();
            assertThatExceptionOfType(LabException.class)
                    .isThrownBy(() -> Lab.open("--lab", "--lab.port=" + port))
                    .withMessageContaining("Port " + port + " is taken")
                    .withMessageContaining("--lab.port=" + (port + 1));
        }
    }

    @Test
    void whatTheLabDoesNotKnowIsRefused() {
        assertThatExceptionOfType(LabException.class)
                .isThrownBy(() -> LabOptions.of("--lab", "--lab.prot=1"))
                .withMessageContaining("lab.prot");
        assertThatExceptionOfType(LabException.class)
                .isThrownBy(() -> LabOptions.of("--lab", "--lab.port=http"))
                .withMessageContaining("is no port");
    }

    @Test
    void thePasswordIsInNoText() {
        assertThat(LabOptions.of("--lab", "--lab.url=jdbc:postgresql://db/x", "--lab.password=secret"))
                .extracting(LabOptions::toString)
                .asString()
                .contains("db/x")
                .doesNotContain("secret");
    }

    @Test
    void aServerOfSomebodyElseIsReachedThroughARelayAndNeverStopped() {
        LabOptions options = LabOptions.of(
                "--lab", "--lab.url=jdbc:postgresql://db.example:5433/orders?ssl=false", "--lab.username=me");
        try (Database database = Database.open(options, 1)) {
            assertThat(database.urlThrough(4711)).isEqualTo("jdbc:postgresql://localhost:4711/orders?ssl=false");
            assertThat(database.address().getPort()).isEqualTo(5433);
            assertThatExceptionOfType(LabException.class).isThrownBy(database::stop);
        }
    }
}
