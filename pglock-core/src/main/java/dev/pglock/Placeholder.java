package dev.pglock;

/** Stands in until there is code. */
public final class Placeholder {

    private Placeholder() {}

    /**
     * Greets.
     *
     * @return the greeting
     */
    public static String greeting() {
        return "pglock";
    }
}
