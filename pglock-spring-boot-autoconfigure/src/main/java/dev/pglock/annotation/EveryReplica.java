package dev.pglock.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;

/**
 * A {@code @Scheduled} method that runs on every replica at each tick: the refresh of a local cache, say. On a type it
 * stands for all its scheduled methods that have no {@link RunOnce}. Together with {@link Singleton} every replica runs
 * each tick, one after the other.
 */
@Documented
@Inherited
@Reflective
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
public @interface EveryReplica {}
