package dev.pglock.aop;

import java.lang.reflect.Method;

/** A method that should be locked cannot be, or not as it is written. Found at start-up. */
public class InvalidLockException extends IllegalStateException {

    private static final long serialVersionUID = 1L;

    /** What to do about it. */
    private final String action;

    /**
     * Creates the exception.
     *
     * @param message which bean or method, and what is wrong
     * @param action what to do about it
     */
    public InvalidLockException(String message, String action) {
        super(message);
        this.action = action;
    }

    static InvalidLockException of(Class<?> type, Method method, String problem, String action) {
        return new InvalidLockException(describe(type, method) + ": " + problem, action);
    }

    static String describe(Class<?> type, Method method) {
        return "Method '" + method.getName() + "' of " + type.getName();
    }

    /**
     * What to do about it.
     *
     * @return one or more sentences
     */
    public String action() {
        return action;
    }
}
