package dev.pglock.test;

import static dev.pglock.test.LockAssertions.assertThatLock;

import dev.pglock.LockRegistry;
import org.junit.jupiter.api.Test;

@TwoReplicas(Shop.class)
class BackfillTests {

    @Test
    void whatOneReplicaHasDoneTheOtherDoesNotDoAgain(Replicas replicas) {
        replicas.a().getBean(NightlyReport.class).backfill();
        replicas.stop(replicas.a());
        replicas.b().getBean(NightlyReport.class).backfill();

        LockRegistry locks = replicas.b().getBean(LockRegistry.class);
        assertThatLock(locks, "backfill").hasCompleted("1").wasRunBy("a");
    }
}
