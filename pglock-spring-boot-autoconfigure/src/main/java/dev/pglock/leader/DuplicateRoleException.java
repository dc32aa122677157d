package dev.pglock.leader;

/** There are two elections for one role: each would win its own. */
public final class DuplicateRoleException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    /** The role. */
    private final String role;

    DuplicateRoleException(String role) {
        super("There are two elections for the role '" + role + "'");
        this.role = role;
    }

    /**
     * What to do.
     *
     * @return the way out, for people
     */
    public String action() {
        return "Remove 'pglock.leader." + role + "' or one of the LeaderElection beans.";
    }
}
