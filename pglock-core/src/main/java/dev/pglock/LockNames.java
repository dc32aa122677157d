package dev.pglock;

import java.text.Normalizer;

/**
 * The one rule for lock names: exact, case-sensitive text in Unicode normal form C, 1 to 255 characters, not blank,
 * no NUL. A name that breaks it is refused, never cut or repaired.
 */
public final class LockNames {

    /** The greatest length of a name, in characters ({@code char}) after normalisation. */
    public static final int MAX_LENGTH = 255;

    private LockNames() {}

    /**
     * Checks a name and brings it to normal form C.
     *
     * @param name the name as written
     * @return the name that is used everywhere
     * @throws IllegalArgumentException if the name is not usable; the message says why
     */
    public static String normalise(String name) {
        if (name.isBlank()) {
            throw new IllegalArgumentException("A lock's name must not be empty or blank");
        }
        if (name.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("A lock's name must not contain the character NUL (\\u0000)");
        }
        for (int i = 0; i < name.length(); i++) {
            if (Character.isSurrogate(name.charAt(i))) {
                if (i + 1 < name.length() && Character.isSurrogatePair(name.charAt(i), name.charAt(i + 1))) {
                    i++;
                } else {
                    throw new IllegalArgumentException(
                            "A lock's name must be well-formed Unicode: half a surrogate pair at index " + i);
                }
            }
        }
        String normal = Normalizer.normalize(name, Normalizer.Form.NFC);
        if (normal.length() > MAX_LENGTH) {
            throw new IllegalArgumentException("A lock's name must have at most " + MAX_LENGTH + " characters, but '"
                    + normal.substring(0, 40) + "…' has " + normal.length());
        }
        return normal;
    }
}
