package dev.pglock.aop;

import dev.pglock.LockRequest;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.convert.DurationStyle;

/** Durations in annotations: {@code 30s} or {@code PT30S}, never a bare number, which everybody reads differently. */
final class DurationText {

    private DurationText() {}

    /**
     * Parses a duration.
     *
     * @return null for the empty text
     * @throws IllegalArgumentException if it is none, or not positive, with a message that fits behind "…: "
     */
    static @Nullable Duration positive(String text) {
        if (text.isEmpty()) {
            return null;
        }
        Duration duration = parse(text);
        if (duration.isZero() || duration.isNegative()) {
            throw new IllegalArgumentException("'" + text + "' must be a positive duration");
        }
        return duration;
    }

    /** The same, but zero is allowed. */
    static @Nullable Duration notNegative(String text) {
        if (text.isEmpty()) {
            return null;
        }
        Duration duration = parse(text);
        if (duration.isNegative()) {
            throw new IllegalArgumentException("'" + text + "' must not be negative");
        }
        return duration;
    }

    private static Duration parse(String text) {
        String trimmed = text.trim();
        if (trimmed.chars().allMatch(c -> Character.isDigit(c) || c == '-')) {
            throw new IllegalArgumentException("'" + text + "' has no unit; write 30s, 500ms or PT30S");
        }
        Duration duration;
        try {
            duration = DurationStyle.detectAndParse(trimmed);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("'" + text + "' is no duration; write 30s, 500ms or PT30S", e);
        }
        if (duration.compareTo(LockRequest.GREATEST_DURATION) > 0) {
            throw new IllegalArgumentException(
                    "'" + text + "' must be at most " + LockRequest.GREATEST_DURATION.toDays() + "d");
        }
        return duration;
    }
}
