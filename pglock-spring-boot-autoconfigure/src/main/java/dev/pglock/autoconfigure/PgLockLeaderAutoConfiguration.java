package dev.pglock.autoconfigure;

import dev.pglock.LeaderElection;
import dev.pglock.LockRegistry;
import dev.pglock.leader.LeaderElections;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;

/** Auto-configuration of leader elections. Without a role it does nothing, and asks for no registry. */
@AutoConfiguration(after = PgLockAutoConfiguration.class)
public final class PgLockLeaderAutoConfiguration {

    PgLockLeaderAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    LeaderElections pgLockLeaderElections(
            PgLockSettings settings,
            ObjectProvider<LockRegistry> registry,
            ObjectProvider<LeaderElection> beans,
            ApplicationEventPublisher publisher) {
        return new LeaderElections(new LeaderRoles(settings, registry, beans, publisher)::create);
    }

    @Bean
    LeaderLifecycle pgLockLeaderLifecycle(LeaderElections elections, PgLockSettings settings, Environment environment) {
        return new LeaderLifecycle(
                elections, settings.properties().leader(), PgLockLifecycle.phaseTimeout(environment));
    }
}
