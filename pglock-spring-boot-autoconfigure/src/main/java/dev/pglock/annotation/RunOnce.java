package dev.pglock.annotation;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.aot.hint.annotation.Reflective;
import org.springframework.core.annotation.AliasFor;

/**
 * The method runs on one replica at a time; a call is skipped while another replica runs it. With a {@link #version} it
 * runs once for ever: a success is remembered with the lock, a failure is not.
 *
 * <p>A skipped call returns nothing, an empty {@code Optional} or null; a method with a primitive result is refused at
 * start-up, unless it is {@code @Scheduled}, where nobody reads it.
 *
 * <p>All attributes are texts in which <code>${…}</code> is resolved. Durations are written as {@code 30s} or
 * {@code PT30S}. Found as a meta-annotation too, with {@code @AliasFor}.
 */
@Documented
@Reflective
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
public @interface RunOnce {

    /**
     * The lock's name, same as {@link #name}.
     *
     * @return the name
     */
    @AliasFor("name")
    String value() default "";

    /**
     * The lock's name: 1 to 255 characters. Parts in <code>#{…}</code> are SpEL over the arguments ({@code #id},
     * {@code #p0}, {@code #a0}) and beans ({@code @bean}).
     *
     * @return the name; by default simple class name, dot, method name
     */
    @AliasFor("value")
    String name() default "";

    /**
     * How long a grant or a renewal is good for: the bound on the time until another replica takes over when this one
     * vanishes.
     *
     * @return a duration; by default {@code pglock.lease-duration}
     */
    String leaseDuration() default "";

    /**
     * By which strategy the lock is kept.
     *
     * @return the strategy; by default {@code pglock.strategy}
     */
    Strategy strategy() default Strategy.DEFAULT;

    /**
     * What happens to the running body when the lock is lost.
     *
     * @return by default {@code pglock.on-lost}
     */
    OnLost onLost() default OnLost.DEFAULT;

    /**
     * How long the body may run at most: after that its heartbeats stop and the lock is lost to it.
     *
     * @return a duration; by default {@code pglock.max-hold}
     */
    String maxHold() default "";

    /**
     * A SpEL expression over the arguments; when it is false the method is not run here, decided before any database
     * call.
     *
     * @return an expression without <code>#{}</code>; by default always true
     */
    String condition() default "";

    /**
     * How long the lock is kept at the least, counted from its grant, even when the body ends sooner.
     *
     * @return a duration; by default none
     */
    String minHold() default "";

    /**
     * Makes a success final: the version is remembered, and no replica runs it again. Needs a name that is written out.
     *
     * @return the version; by default none
     */
    String version() default "";

    /**
     * What a call does that does not get the lock.
     *
     * @return by default the call is skipped
     */
    IfHeld ifHeld() default IfHeld.SKIP;

    /**
     * How long {@link IfHeld#WAIT} waits.
     *
     * @return a duration; by default for ever
     */
    String waitTimeout() default "";
}
