package dev.pglock.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.pglock.LockLostException;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.SharedEntityManagerCreator;
import org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;

/** With JPA's transaction manager over Hibernate, whose statements are sent by the commit. */
class FencedJpaCommitTests extends FencedCommitContract {

    @Entity
    @Table(name = "written")
    static class Written {

        @Id
        Integer id;

        protected Written() {}

        Written(int id) {
            this.id = id;
        }
    }

    static class JpaJobs extends Jobs {

        @Bean
        LocalContainerEntityManagerFactoryBean entityManagerFactory(DataSource dataSource) {
            LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
            factory.setDataSource(dataSource);
            factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
            factory.setManagedTypes(PersistenceManagedTypes.of(Written.class.getName()));
            return factory;
        }

        @Bean
        JpaTransactionManager transactionManager(EntityManagerFactory entityManagerFactory) {
            return new JpaTransactionManager(entityManagerFactory);
        }
    }

    @Override
    Class<? extends Application> application() {
        return JpaJobs.class;
    }

    @Test
    void whatTheCommitFlushesIsFencedToo() {
        database.execute("CREATE TABLE written (id int PRIMARY KEY)");
        One one = one("pglock.lease-duration=30s", "pglock.on-lost=continue");
        EntityManager entities =
                SharedEntityManagerCreator.createSharedEntityManager(one.context.getBean(EntityManagerFactory.class));

        one.underLock("a", () -> one.inTransaction(() -> entities.persist(new Written(1))));
        assertThatExceptionOfType(LockLostException.class)
                .isThrownBy(() -> one.underLock(
                        "a",
                        () -> one.inTransaction(() -> {
                            entities.persist(new Written(2));
                            lose("a");
                        })));
        assertThat(database.text("SELECT array_agg(id) FROM written")).isEqualTo("{1}");
    }
}
