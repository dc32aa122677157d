package dev.pglock.sample.postgres;

import org.jspecify.annotations.Nullable;

/** There is no embedded PostgreSQL to be had. The message ends with the way out. */
public class SharedPostgresException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    static final String ADVICE = "The sample starts a PostgreSQL of its own only when it is told of no other: set"
            + " spring.datasource.url (with spring.datasource.username and spring.datasource.password) to use yours.";

    private final String problem;

    SharedPostgresException(String problem, @Nullable Throwable cause) {
        super(problem + System.lineSeparator() + ADVICE, cause);
        this.problem = problem;
    }

    SharedPostgresException(String problem) {
        this(problem, null);
    }

    String problem() {
        Throwable cause = getCause();
        return cause == null ? this.problem : this.problem + ": " + cause;
    }
}
