package dev.pglock.lease;

import dev.pglock.store.LockStore.Tenancy;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A connection whose commits are fenced. It is never in autocommit mode, where they could not be, and not to be closed. What
 * has a way back to its connection has one to this; what somebody unwraps is the driver's.
 */
final class FencedConnection implements InvocationHandler {

    /** The most special one first. */
    private static final List<Class<?>> PARTS = List.of(
            CallableStatement.class, PreparedStatement.class, Statement.class, ResultSet.class, DatabaseMetaData.class);

    private final Connection connection;
    private final FencedCommit fence;
    private final Tenancy held;

    private FencedConnection(Connection connection, FencedCommit fence, Tenancy held) {
        this.connection = connection;
        this.fence = fence;
        this.held = held;
    }

    static Connection around(Connection connection, FencedCommit fence, Tenancy held) {
        return (Connection) proxy(Connection.class, new FencedConnection(connection, fence, held));
    }

    private static Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(FencedConnection.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
        switch (method.getName()) {
            case "commit" -> fence.check(connection, held);
            case "setAutoCommit" -> {
                if (arguments != null && Boolean.TRUE.equals(arguments[0])) {
                    throw new SQLException(
                            "Under a lease, work commits by itself: in autocommit mode it cannot be fenced");
                }
            }
            case "close", "abort" ->
                throw new SQLException("The connection of a lock is not to be closed by the work on it");
            default -> {
                // Nothing to do with the lock
            }
        }
        return call(connection, (Connection) proxy, proxy, method, arguments);
    }

    /**
     * Calls a connection, or a part of one.
     *
     * @param target the driver's
     * @param fenced what its user takes for the connection
     * @param proxy what its user takes for the target
     */
    private static @Nullable Object call(
            Object target, Connection fenced, Object proxy, Method method, Object @Nullable [] arguments)
            throws Throwable {
        switch (method.getName()) {
            case "equals" -> {
                return arguments != null && proxy == arguments[0];
            }
            case "hashCode" -> {
                return System.identityHashCode(proxy);
            }
            default -> {
                // For the driver
            }
        }
        Object result;
        try {
            result = method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw e.getTargetException();
        }
        if (method.getReturnType() == Connection.class) {
            return fenced;
        }
        // By what is declared: what is unwrapped is an object.
        return result != null && PARTS.contains(method.getReturnType()) ? part(result, fenced) : result;
    }

    private static Object part(Object part, Connection fenced) {
        Class<?> type = PARTS.stream()
                .filter(known -> known.isInstance(part))
                .findFirst()
                .orElseThrow();
        return proxy(type, (proxy, method, arguments) -> call(part, fenced, proxy, method, arguments));
    }
}
