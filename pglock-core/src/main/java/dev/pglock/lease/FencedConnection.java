package dev.pglock.lease;

import dev.pglock.store.LockStore.Tenancy;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** A connection whose commits are fenced. It is never in autocommit mode, where they could not be, and not to be closed. */
final class FencedConnection implements InvocationHandler {

    private final Connection connection;
    private final FencedCommit fence;
    private final Tenancy held;

    private FencedConnection(Connection connection, FencedCommit fence, Tenancy held) {
        this.connection = connection;
        this.fence = fence;
        this.held = held;
    }

    static Connection around(Connection connection, FencedCommit fence, Tenancy held) {
        return (Connection) Proxy.newProxyInstance(
                FencedConnection.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                new FencedConnection(connection, fence, held));
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
        try {
            return method.invoke(connection, arguments);
        } catch (InvocationTargetException e) {
            throw e.getTargetException();
        }
    }
}
