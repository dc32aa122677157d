package dev.pglock;

/** The lock was held and is held no longer: what was done under it may overlap with the next holder's work. */
public class LockLostException extends LockException {

    private static final long serialVersionUID = 1L;

    /** The lock. */
    private final String name;

    /** The tenure that was lost. */
    private final long fence;

    /**
     * Creates the exception.
     *
     * @param name the lock's name
     * @param fence the fence of the tenure that was lost
     * @param why what happened, as the end of a sentence
     */
    public LockLostException(String name, long fence, String why) {
        super("Lock '" + name + "' with fence " + fence + " is no longer held: " + why, null);
        this.name = name;
        this.fence = fence;
    }

    /**
     * The lock's name.
     *
     * @return the name
     */
    public String lockName() {
        return name;
    }

    /**
     * The fence of the tenure that was lost.
     *
     * @return the fence
     */
    public long fence() {
        return fence;
    }
}
