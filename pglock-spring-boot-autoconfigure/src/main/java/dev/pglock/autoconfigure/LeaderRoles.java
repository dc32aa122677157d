package dev.pglock.autoconfigure;

import dev.pglock.LeaderElection;
import dev.pglock.LeaderListener;
import dev.pglock.LeaderTerm;
import dev.pglock.LockRegistry;
import dev.pglock.LockRequest;
import dev.pglock.leader.LeadershipGrantedEvent;
import dev.pglock.leader.LeadershipRevokedEvent;
import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ApplicationEventPublisher;

/** Puts together the elections of properties and beans, each with the events of its terms. */
final class LeaderRoles {

    private final PgLockSettings settings;
    private final ObjectProvider<LockRegistry> registry;
    private final ObjectProvider<LeaderElection> beans;
    private final ApplicationEventPublisher publisher;

    LeaderRoles(
            PgLockSettings settings,
            ObjectProvider<LockRegistry> registry,
            ObjectProvider<LeaderElection> beans,
            ApplicationEventPublisher publisher) {
        this.settings = settings;
        this.registry = registry;
        this.beans = beans;
        this.publisher = publisher;
    }

    /** The registry is asked for only if there is a role: nobody's first lock is to be that of a leader there is not. */
    List<LeaderElection> create() {
        List<LeaderElection> all = new ArrayList<>();
        settings.properties()
                .leader()
                .forEach((role, leader) ->
                        all.add(LeaderElection.of(registry.getObject(), role, request(role, leader))));
        beans.orderedStream().forEach(all::add);
        Events events = new Events();
        all.forEach(election -> election.addListener(events));
        return all;
    }

    static String lockName(String role, PgLockProperties.Leader leader) {
        return leader.name() == null ? "leader:" + role : leader.name();
    }

    private static LockRequest request(String role, PgLockProperties.Leader leader) {
        LockRequest request = LockRequest.of(lockName(role, leader));
        if (leader.strategy() != null) {
            request = request.strategy(leader.strategy());
        }
        return leader.leaseDuration() == null ? request : request.leaseDuration(leader.leaseDuration());
    }

    private final class Events implements LeaderListener {

        @Override
        public void granted(LeaderTerm term) {
            publisher.publishEvent(new LeadershipGrantedEvent(term.role(), term.fence(), settings.label()));
        }

        @Override
        public void revoked(LeaderTerm term) {
            publisher.publishEvent(new LeadershipRevokedEvent(term.role(), term.fence(), settings.label()));
        }
    }
}
