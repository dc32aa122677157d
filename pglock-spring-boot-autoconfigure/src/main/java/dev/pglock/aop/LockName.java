package dev.pglock.aop;

import dev.pglock.LockNames;
import java.util.List;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;
import org.springframework.expression.common.CompositeStringExpression;
import org.springframework.expression.common.LiteralExpression;

/**
 * A lock's name, constant or with parts that are evaluated at each call. What comes out of an evaluation is a name and
 * is never evaluated again; what cannot be evaluated is an exception, never a name.
 */
final class LockName {

    private final String text;
    private final @Nullable String constant;
    private final List<Expression> parts;

    private LockName(String text, @Nullable String constant, List<Expression> parts) {
        this.text = text;
        this.constant = constant;
        this.parts = parts;
    }

    /**
     * Reads a name whose placeholders have been resolved.
     *
     * @throws IllegalArgumentException if it is no usable name
     * @throws org.springframework.expression.ParseException if a part cannot be parsed
     */
    static LockName parse(String text, Expressions expressions) {
        if (!text.contains("#{")) {
            return new LockName(text, LockNames.normalise(text), List.of());
        }
        Expression parsed = expressions.template(text);
        return new LockName(
                text,
                null,
                parsed instanceof CompositeStringExpression composite
                        ? List.of(composite.getExpressions())
                        : List.of(parsed));
    }

    boolean isConstant() {
        return constant != null;
    }

    /** The name as it was written, for people: the template, not what it comes to. */
    String text() {
        return text;
    }

    /** Whether some call could come to that name. */
    boolean mayBe(String name) {
        if (constant != null) {
            return constant.equals(name);
        }
        String pattern = parts.stream()
                .map(part ->
                        part instanceof LiteralExpression literal ? Pattern.quote(literal.getExpressionString()) : ".*")
                .collect(Collectors.joining());
        return Pattern.compile(pattern, Pattern.DOTALL).matcher(name).matches();
    }

    /** The name of one call. Part by part, because a composite expression drops a null without a word. */
    String evaluate(Supplier<EvaluationContext> context) {
        if (constant != null) {
            return constant;
        }
        EvaluationContext arguments = context.get();
        StringBuilder name = new StringBuilder();
        for (Expression part : parts) {
            Object value = part instanceof LiteralExpression literal
                    ? literal.getExpressionString()
                    : part.getValue(arguments, Object.class);
            if (value == null) {
                throw new IllegalArgumentException("The lock name '" + text + "' is null in the part '"
                        + part.getExpressionString() + "': the argument is null, or its name is not known because the "
                        + "class was compiled without -parameters (#p0, #p1 work always)");
            }
            name.append(value);
        }
        return LockNames.normalise(name.toString());
    }

    @Override
    public String toString() {
        return text;
    }
}
