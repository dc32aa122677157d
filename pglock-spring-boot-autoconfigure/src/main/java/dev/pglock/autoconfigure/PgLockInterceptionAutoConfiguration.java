package dev.pglock.autoconfigure;

import dev.pglock.aop.LockInterceptionConfiguration;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.context.annotation.Import;

/**
 * Auto-configuration of the interception of annotated and scheduled methods. It does not depend on a registry being
 * there: without a database the start is to fail, and not the annotations to do nothing.
 */
@AutoConfiguration(after = PgLockAutoConfiguration.class)
@ConditionalOnBooleanProperty(name = "pglock.enabled", matchIfMissing = true)
@Import(LockInterceptionConfiguration.class)
public final class PgLockInterceptionAutoConfiguration {

    PgLockInterceptionAutoConfiguration() {}
}
