package dev.pglock.autoconfigure;

import dev.pglock.transaction.FencingImpossibleException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says what to do where commits are required to be fenced and cannot be. */
final class FencingImpossibleFailureAnalyzer extends AbstractFailureAnalyzer<FencingImpossibleException> {

    private static final String ACTION = "Keep the locks in the database that those transactions write to, or set"
            + " pglock.fencing=auto: then a WARN says which commits are not fenced. What is written elsewhere can be guarded"
            + " with dev.pglock.FencedResource.";

    FencingImpossibleFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, FencingImpossibleException cause) {
        return new FailureAnalysis(cause.getMessage(), ACTION, cause);
    }
}
