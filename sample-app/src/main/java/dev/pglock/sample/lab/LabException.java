package dev.pglock.sample.lab;

/** The lab cannot be, or cannot go on. The message is for the person at the terminal and says what to do. */
class LabException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    LabException(String message) {
        super(message);
    }

    LabException(String message, Throwable cause) {
        super(message, cause);
    }
}
