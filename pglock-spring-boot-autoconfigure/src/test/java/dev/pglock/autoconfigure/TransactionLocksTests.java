package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.pglock.LockHandle;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.transaction.TransactionLocks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** Locks that last until the transaction ends, beside ordinary ones of the same name. */
class TransactionLocksTests extends TwoReplicas {

    static class Transactions extends Application {

        @Bean
        Outer outer(TransactionLocks locks, Inner inner) {
            return new Outer(locks, inner);
        }

        @Bean
        Inner inner(TransactionLocks locks) {
            return new Inner(locks);
        }

        @Bean
        Helper helper(TransactionLocks locks) {
            return new Helper(locks);
        }
    }

    static class Outer {

        private final TransactionLocks locks;
        private final Inner inner;

        Outer(TransactionLocks locks, Inner inner) {
            this.locks = locks;
            this.inner = inner;
        }

        @Transactional
        public boolean readCommitted(Runnable meanwhile) {
            return acquire(meanwhile);
        }

        @Transactional(isolation = Isolation.SERIALIZABLE)
        public boolean serializable(Runnable meanwhile) {
            return acquire(meanwhile);
        }

        @Transactional
        public void failing() {
            assertThat(locks.tryAcquire("n")).isTrue();
            throw new IllegalArgumentException("rolled back");
        }

        @Transactional
        public void nested() {
            inner.nested();
        }

        @Transactional
        public void goingOn(Runnable failing) {
            assertThatIllegalArgumentException().isThrownBy(() -> inner.nested(failing));
        }

        private boolean acquire(Runnable meanwhile) {
            boolean acquired = locks.tryAcquire("n");
            meanwhile.run();
            return acquired;
        }
    }

    static class Inner {

        private final TransactionLocks locks;

        Inner(TransactionLocks locks) {
            this.locks = locks;
        }

        @Transactional(propagation = Propagation.NESTED)
        public void nested() {
            locks.tryAcquire("n");
        }

        @Transactional(propagation = Propagation.NESTED)
        public void nested(Runnable failing) {
            failing.run();
            throw new IllegalArgumentException("rolled back");
        }
    }

    static class Helper {

        private final TransactionLocks locks;

        Helper(TransactionLocks locks) {
            this.locks = locks;
        }

        @Transactional
        public void acquire() {
            assertThat(locks.tryAcquire("n")).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory"})
    void aLockOfATransactionAndAnOrdinaryOneExcludeEachOther(String strategy) {
        ConfigurableApplicationContext a = start("a", Transactions.class, "pglock.strategy=" + strategy);
        ConfigurableApplicationContext b = start("b", Transactions.class, "pglock.strategy=" + strategy);
        Outer outer = a.getBean(Outer.class);
        LockRegistry other = b.getBean(LockRegistry.class);
        Runnable excluded =
                () -> assertThat(other.tryAcquire(LockRequest.of("n"))).isEmpty();

        assertThat(outer.readCommitted(excluded)).isTrue();
        assertThat(outer.serializable(excluded)).isTrue();
        try (LockHandle lock = other.tryAcquire(LockRequest.of("n")).orElseThrow()) {
            assertThat(outer.readCommitted(() -> {})).isFalse();
            assertThat(outer.serializable(() -> {})).isFalse();
            assertThat(lock.isHeld()).isTrue();
        }
        assertThatThrownBy(outer::failing).hasMessage("rolled back");
        assertThat(outer.readCommitted(() -> {})).isTrue();
        other.tryAcquire(LockRequest.of("n")).orElseThrow().close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"lease", "advisory"})
    void outsideATransactionAndInANestedOneItIsRefused(String strategy) {
        ConfigurableApplicationContext a = start("a", Transactions.class, "pglock.strategy=" + strategy);

        assertThatIllegalStateException()
                .isThrownBy(() -> a.getBean(TransactionLocks.class).tryAcquire("n"))
                .withMessageContaining("no transaction");
        assertThatIllegalStateException()
                .isThrownBy(() -> a.getBean(Outer.class).nested())
                .withMessageContaining("nested transaction");
    }

    @Test
    void aLockThatEndsWithANestedTransactionLetsTheOuterOneCommitNothing() {
        ConfigurableApplicationContext a = start("a", Transactions.class);
        JdbcTemplate jdbc = a.getBean(JdbcTemplate.class);
        Outer outer = a.getBean(Outer.class);
        Helper helper = a.getBean(Helper.class);

        assertThatIllegalStateException()
                .isThrownBy(() -> outer.goingOn(() -> {
                    jdbc.update("UPDATE counter SET value = value + 1");
                    helper.acquire();
                }))
                .withMessageContaining("savepoint");

        TransactionTemplate transaction = transaction(a, TransactionDefinition.PROPAGATION_REQUIRED);
        TransactionTemplate nested = transaction(a, TransactionDefinition.PROPAGATION_NESTED);
        assertThatIllegalStateException()
                .isThrownBy(() -> transaction.executeWithoutResult(status -> {
                    jdbc.update("UPDATE counter SET value = value + 1");
                    nested.executeWithoutResult(inside -> {
                        helper.acquire();
                        inside.setRollbackOnly();
                    });
                }))
                .withMessageContaining("savepoint");
        assertThat(database.number("SELECT value FROM counter")).isZero();

        outer.goingOn(() -> jdbc.update("UPDATE counter SET value = value + 1"));
        assertThat(outer.readCommitted(() -> {})).isTrue();
    }

    @Test
    void aLockThatIsOlderThanWhatIsRolledBackIsHeldUntilTheEnd() {
        ConfigurableApplicationContext a = start("a", Transactions.class);
        LockRegistry other = start("b", Transactions.class).getBean(LockRegistry.class);
        JdbcTemplate jdbc = a.getBean(JdbcTemplate.class);
        Helper helper = a.getBean(Helper.class);
        TransactionTemplate transaction = transaction(a, TransactionDefinition.PROPAGATION_REQUIRED);
        TransactionTemplate nested = transaction(a, TransactionDefinition.PROPAGATION_NESTED);

        transaction.executeWithoutResult(status -> {
            jdbc.update("UPDATE counter SET value = value + 1");
            nested.executeWithoutResult(inside -> helper.acquire());
            nested.executeWithoutResult(inside -> {
                helper.acquire();
                inside.setRollbackOnly();
            });
            assertThat(other.tryAcquire(LockRequest.of("n"))).isEmpty();
        });
        assertThat(database.number("SELECT value FROM counter")).isOne();
        other.tryAcquire(LockRequest.of("n")).orElseThrow().close();
    }

    private static TransactionTemplate transaction(ConfigurableApplicationContext context, int propagation) {
        TransactionTemplate template = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        template.setPropagationBehavior(propagation);
        return template;
    }
}
