package dev.pglock.autoconfigure;

import dev.pglock.lease.LeaseSchemaException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Prints what is wrong with the table, and the statements to hand to whoever may run them. */
final class LeaseSchemaFailureAnalyzer extends AbstractFailureAnalyzer<LeaseSchemaException> {

    LeaseSchemaFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, LeaseSchemaException cause) {
        // The message says what is wrong first and what to do next, with a blank line between.
        String[] parts = String.valueOf(cause.getMessage()).split("\n\n", 2);
        return new FailureAnalysis(parts[0], parts.length == 2 ? parts[1] : null, cause);
    }
}
