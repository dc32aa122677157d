package dev.pglock.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.context.annotation.Import;
import org.springframework.test.context.TestPropertySource;

/**
 * Puts a {@link TickDriver} in the place of the scheduler, and of those that the application has by itself or names in
 * {@code @Scheduled(scheduler = …)}: nothing fires before the test says so, but for what a program gives to such a scheduler
 * itself. Locks are kept in memory
 * ({@code pglock.strategy=local}), because a database has a clock of its own. {@link PgLockTest} has it already; it can
 * stand beside {@code @SpringBootTest}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@Import(TickDriverConfiguration.Selector.class)
@TestPropertySource(properties = "pglock.strategy=local")
public @interface DrivenTicks {}
