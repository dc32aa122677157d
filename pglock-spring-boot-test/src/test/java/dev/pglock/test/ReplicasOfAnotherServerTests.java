package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;
import static org.assertj.core.api.Assertions.assertThat;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.springframework.core.env.Environment;

/** Two replicas on a database that somebody else has started. */
@TwoReplicas(value = Shop.class, url = "${replicas.test.url}")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class ReplicasOfAnotherServerTests {

    private static final String PROPERTY = "replicas.test.url";

    private static EmbeddedServer server;
    private static String url;

    @BeforeAll
    static void startServer() {
        server = EmbeddedServer.start(ReplicasOfAnotherServerTests.class.getClassLoader());
        url = server.newDatabase() + "&password=postgres";
        System.setProperty(PROPERTY, url);
    }

    @AfterAll
    static void stopServer() throws IOException {
        System.clearProperty(PROPERTY);
        server.close();
    }

    @Test
    @Order(1)
    void theyExcludeEachOtherThere(Replicas replicas) throws SQLException {
        assertThat(replicas.url()).isEqualTo(url);
        assertThat(replicas.running())
                .hasSize(2)
                .allSatisfy(
                        replica -> assertThat(replica.getBean(Environment.class).getProperty("spring.datasource.url"))
                                .isEqualTo(url));
        LockRegistry a = replicas.a().getBean(LockRegistry.class);
        LockRegistry b = replicas.b().getBean(LockRegistry.class);
        try (LockHandle lock = a.tryAcquire(LockRequest.of("job")).orElseThrow()) {
            assertThat(lock.isHeld()).isTrue();
            assertThat(b.tryAcquire(LockRequest.of("job"))).isEmpty();
            assertThatLock(b, "job").isHeldBy("a");
        }
        try (Connection connection = replicas.connection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT count(*) FROM pglock_lease WHERE name = 'job'")) {
            assertThat(row.next()).isTrue();
            assertThat(row.getInt(1)).isOne();
        }
    }

    @Test
    @Order(2)
    void itIsUsedAsItIsAndLeftAsItIs(Replicas replicas) {
        LockRegistry b = replicas.b().getBean(LockRegistry.class);
        // By the method before.
        assertThatLock(b, "job").isFree().wasRunBy("a");
    }
}
