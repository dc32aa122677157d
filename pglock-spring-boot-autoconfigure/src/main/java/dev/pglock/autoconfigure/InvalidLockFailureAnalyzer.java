package dev.pglock.autoconfigure;

import dev.pglock.aop.InvalidLockException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says which method cannot be locked, why, and what to do about it. */
final class InvalidLockFailureAnalyzer extends AbstractFailureAnalyzer<InvalidLockException> {

    InvalidLockFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidLockException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
