package dev.pglock.test;

import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** Starts the replicas of {@link TwoReplicas}. JUnit closes what its stores keep: they after the method, the server at the end. */
final class ReplicasExtension implements ParameterResolver {

    private static final Namespace NAMESPACE = Namespace.create(ReplicasExtension.class);

    ReplicasExtension() {}

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Replicas.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        if (context.getTestMethod().isEmpty()) {
            throw new ParameterResolutionException(
                    "Replicas live as long as a test method: ask for them there, or in @BeforeEach");
        }
        TwoReplicas described = find(context)
                .orElseThrow(() -> new ParameterResolutionException(
                        "@TwoReplicas is missing on the test class and on its method"));
        return context.getStore(NAMESPACE)
                .computeIfAbsent(
                        Replicas.class, key -> Replicas.start(described, () -> server(context)), Replicas.class);
    }

    private static EmbeddedServer server(ExtensionContext context) {
        return context.getRoot()
                .getStore(NAMESPACE)
                .computeIfAbsent(
                        EmbeddedServer.class,
                        key -> EmbeddedServer.start(ReplicasExtension.class.getClassLoader()),
                        EmbeddedServer.class);
    }

    private static Optional<TwoReplicas> find(ExtensionContext context) {
        return AnnotationSupport.findAnnotation(context.getElement(), TwoReplicas.class)
                .or(() -> context.getParent().flatMap(ReplicasExtension::find));
    }
}
