package dev.pglock;

import java.text.Normalizer;
import java.util.Objects;

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
        return normalise("name", name);
    }

    /** The same rule for what is written beside a name. */
    static String normalise(String what, String text) {
        Objects.requireNonNull(text, () -> "A lock's " + what + " must not be null");
        if (text.isBlank()) {
            throw new IllegalArgumentException("A lock's " + what + " must not be empty or blank");
        }
        checkText("A lock's " + what, text);
        String normal = Normalizer.normalize(text, Normalizer.Form.NFC);
        if (normal.length() > MAX_LENGTH) {
            throw new IllegalArgumentException("A lock's " + what + " must have at most " + MAX_LENGTH
                    + " characters (UTF-16), but '" + normal.substring(0, 40) + "…' has " + normal.length());
        }
        return normal;
    }

    /** What PostgreSQL cannot keep, or would keep as something else. */
    static void checkText(String what, String text) {
        if (text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException(what + " must not contain the character NUL (\\u0000)");
        }
        for (int i = 0; i < text.length(); i++) {
            if (Character.isSurrogate(text.charAt(i))) {
                if (i + 1 < text.length() && Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) {
                    i++;
                } else {
                    throw new IllegalArgumentException(
                            what + " must be well-formed Unicode: half a surrogate pair at index " + i);
                }
            }
        }
    }
}
