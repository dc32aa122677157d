package dev.pglock.aop;

import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.core.env.Environment;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;
import org.springframework.expression.ExpressionParser;
import org.springframework.expression.common.TemplateParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** Spring's expression support, set up for the attributes of our annotations. */
final class Expressions {

    private static final TemplateParserContext TEMPLATE = new TemplateParserContext("#{", "}");

    private final ExpressionParser parser = new SpelExpressionParser();
    private final ParameterNameDiscoverer parameterNames = new DefaultParameterNameDiscoverer();
    private final Environment environment;
    private final BeanFactory beans;

    Expressions(Environment environment, BeanFactory beans) {
        this.environment = environment;
        this.beans = beans;
    }

    /** Resolves <code>${…}</code>; a placeholder without a value is an {@link IllegalArgumentException}. */
    String placeholders(String text) {
        return environment.resolveRequiredPlaceholders(text);
    }

    /** Parses a text with parts in <code>#{…}</code>. */
    Expression template(String text) {
        return parser.parseExpression(text, TEMPLATE);
    }

    /** Parses a bare expression. */
    Expression expression(String text) {
        return parser.parseExpression(text);
    }

    /** The arguments by name and by position ({@code #p0}, {@code #a0}), and beans. */
    EvaluationContext context(@Nullable Object target, Method method, Object[] arguments) {
        MethodBasedEvaluationContext context =
                new MethodBasedEvaluationContext(target == null ? method : target, method, arguments, parameterNames);
        context.setBeanResolver(new BeanFactoryResolver(beans));
        return context;
    }
}
