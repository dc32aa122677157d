package dev.pglock.autoconfigure;

import dev.pglock.leader.DuplicateRoleException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says which role has two elections. */
final class DuplicateRoleFailureAnalyzer extends AbstractFailureAnalyzer<DuplicateRoleException> {

    DuplicateRoleFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, DuplicateRoleException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
