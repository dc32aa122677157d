package dev.pglock.autoconfigure;

import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.Ordered;

/**
 * Names the keys below {@code pglock} that do not exist. Spring Boot's own analyzer prints their values as well, and a
 * password under a misspelt key is a password.
 */
final class UnknownPropertyFailureAnalyzer extends AbstractFailureAnalyzer<BindException> implements Ordered {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("pglock");

    UnknownPropertyFailureAnalyzer() {}

    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
        if (!PREFIX.equals(cause.getName())
                || !(cause.getCause() instanceof UnboundConfigurationPropertiesException unbound)) {
            return null;
        }
        String keys = unbound.getUnboundProperties().stream()
                .map(UnknownPropertyFailureAnalyzer::describe)
                .collect(Collectors.joining("\n"));
        return new FailureAnalysis(
                "These configuration properties do not exist:\n\n" + keys,
                "Correct or remove them. A setting that were ignored in silence could be the one that a lock rests on.",
                cause);
    }

    private static String describe(ConfigurationProperty property) {
        return "    " + property.getName() + (property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")");
    }
}
