package dev.pglock.sample.postgres;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Prints what is wrong and what to do, without a stack trace. */
class SharedPostgresFailureAnalyzer extends AbstractFailureAnalyzer<SharedPostgresException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, SharedPostgresException cause) {
        return new FailureAnalysis(cause.problem(), SharedPostgresException.ADVICE, cause);
    }
}
