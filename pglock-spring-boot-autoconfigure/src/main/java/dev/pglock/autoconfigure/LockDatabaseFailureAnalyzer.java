package dev.pglock.autoconfigure;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says what to do when there is no database that could keep the locks. */
final class LockDatabaseFailureAnalyzer extends AbstractFailureAnalyzer<LockDatabaseException> {

    LockDatabaseFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, LockDatabaseException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
