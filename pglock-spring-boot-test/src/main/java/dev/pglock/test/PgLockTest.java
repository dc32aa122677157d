package dev.pglock.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.autoconfigure.OverrideAutoConfiguration;
import org.springframework.boot.test.context.filter.annotation.TypeExcludeFilters;
import org.springframework.test.context.BootstrapWith;
import org.springframework.test.context.junit.jupiter.SpringExtension;

/**
 * A test of locked methods that needs no database: pglock's auto-configuration with {@code pglock.strategy=local}, a
 * {@link TickDriver} in the place of the scheduler, and of your beans those that the test imports. Everything but the
 * memory is as it is in production: annotations, names, once per tick, versions, refusals at start-up.
 *
 * <pre>{@code
 * @PgLockTest
 * @Import(ReportJob.class)
 * class ReportJobTests { … }
 * }</pre>
 *
 * <p>As in every slice, the test's configuration is the class with {@code @SpringBootApplication} above it, or a nested
 * {@code @Configuration}; components that are found by scanning are left out. For schedules it must have {@code
 * @EnableScheduling}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@BootstrapWith(PgLockTestContextBootstrapper.class)
@ExtendWith(SpringExtension.class)
@OverrideAutoConfiguration(enabled = false)
@TypeExcludeFilters(NothingScanned.class)
@ImportAutoConfiguration
@DrivenTicks
public @interface PgLockTest {

    /**
     * Properties of the test's environment.
     *
     * @return each as {@code key=value}
     */
    String[] properties() default {};
}
