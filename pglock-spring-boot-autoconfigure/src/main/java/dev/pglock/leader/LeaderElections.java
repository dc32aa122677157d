package dev.pglock.leader;

import dev.pglock.LeaderElection;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.util.function.SingletonSupplier;

/**
 * The elections of this application, by role: those of {@code pglock.leader}, and its beans of the type {@link
 * LeaderElection}. They are started and stopped with the application. Thread-safe.
 */
public final class LeaderElections {

    private final Supplier<Map<String, LeaderElection>> elections;

    /**
     * Creates it.
     *
     * @param elections asked once, when the first election is wanted
     */
    public LeaderElections(Supplier<? extends Collection<LeaderElection>> elections) {
        this.elections = SingletonSupplier.of(() -> byRole(elections.get()));
    }

    private static Map<String, LeaderElection> byRole(Collection<LeaderElection> all) {
        Map<String, LeaderElection> byRole = new LinkedHashMap<>();
        for (LeaderElection election : all) {
            if (byRole.putIfAbsent(election.role(), election) != null) {
                throw new DuplicateRoleException(election.role());
            }
        }
        return byRole;
    }

    /**
     * The election for a role.
     *
     * @param role the role
     * @return its election
     * @throws IllegalArgumentException if there is none; the message names those that there are
     */
    public LeaderElection get(String role) {
        Map<String, LeaderElection> all = elections.get();
        LeaderElection election = all.get(role);
        if (election == null) {
            throw new IllegalArgumentException("There is no election for the role '" + role + "', only for "
                    + all.keySet() + ": add 'pglock.leader." + role + "' or a LeaderElection bean");
        }
        return election;
    }

    /**
     * All elections.
     *
     * @return those of properties first
     */
    public List<LeaderElection> all() {
        return List.copyOf(elections.get().values());
    }
}
