package dev.pglock.aop;

/** Which {@code @Scheduled} methods are locked. */
public enum ScheduledMode {
    /** Those of every bean that no auto-configuration contributed. */
    ALL,
    /** Those that are annotated with {@code @RunOnce} as well. */
    ANNOTATED,
    /** None for being scheduled; {@code @RunOnce} and {@code @Singleton} work as on any method. */
    OFF
}
